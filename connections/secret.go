package connections

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// hidden is what a secret shows of itself, also where there is none.
const hidden = "[secret]"

// Secret is some bytes that show themselves to nobody who did not ask for them by [Secret.Reveal]: not to fmt by any verb,
// not to an encoder, not to a logger. It has no way to be decoded, so that its mark is never taken for a secret. The zero
// Secret is none.
type Secret struct {
	// Behind two pointers, because fmt asks no method of a field that is not exported, and prints what is in it. Of a pointer
	// it prints the address; but where the verb does not fit it goes one step further.
	held **[]byte
}

// NewSecret is the secret of these bytes, which are copied. No bytes are none.
func NewSecret(b []byte) Secret {
	if len(b) == 0 {
		return Secret{}
	}
	held := new(bytes.Clone(b))
	return Secret{&held}
}

// Reveal returns the bytes, a copy; nil where there are none.
func (s Secret) Reveal() []byte {
	if s.held == nil {
		return nil
	}
	return bytes.Clone(**s.held)
}

// Len is the number of bytes.
func (s Secret) Len() int {
	if s.held == nil {
		return 0
	}
	return len(**s.held)
}

// IsZero reports whether there is none.
func (s Secret) IsZero() bool { return s.held == nil }

// Equal compares in a time that says nothing of where they differ.
func (s Secret) Equal(o Secret) bool { return subtle.ConstantTimeCompare(s.Reveal(), o.Reveal()) == 1 }

// String does not show the secret.
func (Secret) String() string { return hidden }

// GoString does not show the secret.
func (Secret) GoString() string { return hidden }

// Format does not show the secret, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalJSON does not show the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalText does not show the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue does not show the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
