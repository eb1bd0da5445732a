package connections

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of what is kept, in bytes.
const (
	MaxText     = 255     // of a tenant, id, kind and name each
	MaxSettings = 1 << 16 // as they are given
	MaxSecret   = 1 << 16
)

// Connection is what a tenant connected to. Its times are in UTC and whole microseconds, by the store's clock.
type Connection struct {
	Tenant, ID string
	Kind       string          // what it connects to; it stays as it was created
	Name       string          // what people call it
	Settings   json.RawMessage // an object, which says the same as what was given, in other spaces or another order perhaps
	Secret     Secret          // only from [Store.Get]
	Created    time.Time
	Updated    time.Time // not before Created
}

// Draft is a connection to create.
type Draft struct {
	Tenant   string
	ID       string // "": a new UUID
	Kind     string
	Name     string
	Settings json.RawMessage // an object, {} where it is empty
	Secret   Secret
}

// Change says what an update is to write. What is nil stays as it is.
type Change struct {
	Name     *string
	Settings json.RawMessage // in place of all of the settings
	Secret   *Secret         // the zero Secret removes it
}

// WithDefaults is the draft with an id and settings.
func (d Draft) WithDefaults() Draft {
	if d.ID == "" {
		d.ID = newID()
	}
	if len(d.Settings) == 0 {
		d.Settings = json.RawMessage(`{}`)
	}
	return d
}

// Check is an error where the draft, with its defaults, can not be created: [ErrInput], with the reason.
func (d Draft) Check() error {
	for _, err := range []error{
		CheckTenant(d.Tenant), CheckID(d.ID), checkText("kind", d.Kind), checkText("name", d.Name), checkSettings(d.Settings), checkSecret(d.Secret),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Check is an error where the change can not be made: [ErrInput], with the reason.
func (c Change) Check() error {
	if c.Name == nil && c.Settings == nil && c.Secret == nil {
		return fmt.Errorf("%w: there is nothing to change", ErrInput)
	}
	if c.Name != nil {
		if err := checkText("name", *c.Name); err != nil {
			return err
		}
	}
	if c.Settings != nil {
		if err := checkSettings(c.Settings); err != nil {
			return err
		}
	}
	if c.Secret != nil {
		return checkSecret(*c.Secret)
	}
	return nil
}

// CheckTenant is an error where the text names no tenant: [ErrInput], with the reason.
func CheckTenant(tenant string) error { return checkText("tenant", tenant) }

// CheckID is an error where the text is no id: [ErrInput], with the reason.
func CheckID(id string) error { return checkText("id", id) }

func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: there is no %s", ErrInput, what)
	case len(s) > MaxText:
		return fmt.Errorf("%w: a %s of %d bytes; it has at most %d", ErrInput, what, len(s), MaxText)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: the %s is not in UTF-8", ErrInput, what)
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("%w: the %s has a zero byte in it", ErrInput, what)
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%w: the %s is blank", ErrInput, what)
	}
	return nil
}

func checkSecret(s Secret) error {
	if s.Len() > MaxSecret {
		return fmt.Errorf("%w: a secret of %d bytes; it has at most %d", ErrInput, s.Len(), MaxSecret)
	}
	return nil
}

// checkSettings quotes nothing of what it refuses: somebody may have put a secret there.
func checkSettings(j json.RawMessage) error {
	if len(j) > MaxSettings {
		return fmt.Errorf("%w: settings of %d bytes; they have at most %d", ErrInput, len(j), MaxSettings)
	}
	var object map[string]any
	if !utf8.Valid(j) || json.Unmarshal(j, &object) != nil || object == nil {
		return fmt.Errorf("%w: the settings are no JSON object", ErrInput)
	}
	// Zero is written \u0000 in JSON. Where that stands no text is decoded for nothing.
	if bytes.Contains(j, []byte(`\u0000`)) && hasZero(object) {
		return fmt.Errorf("%w: the settings have a zero character in a text", ErrInput)
	}
	return nil
}

func hasZero(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		for _, e := range v {
			if hasZero(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if hasZero(k) || hasZero(e) {
				return true
			}
		}
	}
	return false
}

// newID is a random UUID, version 4.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
