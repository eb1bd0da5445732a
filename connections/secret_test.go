package connections_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/connectionstest"
)

// A secret shows itself in no form, alone or wherever it is kept: fmt asks no method of what is in a field that is not
// exported, or in a map in one.
func TestASecretShowsItselfToNobody(t *testing.T) {
	secret := []byte("sk_live_4eC39HqLyjWDarjt")
	s := connections.NewSecret(secret)
	type inside struct {
		hidden connections.Secret
		Shown  connections.Secret
	}
	for name, v := range map[string]any{
		"alone": s, "pointer": &s, "list": []connections.Secret{s}, "map": map[string]connections.Secret{"s": s}, "any": any(s),
		"in a field": inside{s, s}, "pointer to a field": &inside{s, s}, "in fields": struct{ in inside }{inside{s, s}}, "in a list in a field": struct{ in []inside }{[]inside{{s, s}}},
		"in a map in a field": struct{ m map[string]*inside }{map[string]*inside{"s": {s, s}}}, "any in a field": struct{ in any }{s}, "pointer in a field": struct{ p *connections.Secret }{&s},
		"connection": connections.Connection{Secret: s}, "draft": &connections.Draft{Secret: s}, "change": connections.Change{Secret: &s}, "error": fmt.Errorf("with %v and %+v", s, inside{s, s}),
	} {
		if text := connectionstest.Printed(v); connectionstest.Shows(text, secret) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"json": func(b *bytes.Buffer) error { return json.NewEncoder(b).Encode(connections.Connection{Secret: s}) },
		"xml":  func(b *bytes.Buffer) error { return xml.NewEncoder(b).Encode(connections.Connection{Secret: s}) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil || !strings.Contains(b.String(), "[secret]") || connectionstest.Shows(b.String(), secret) {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
	}
	var b bytes.Buffer // gob takes no type that has nothing to encode
	if err := gob.NewEncoder(&b).Encode(connections.Connection{Secret: s}); err == nil || connectionstest.Shows(b.String()+connectionstest.Printed(err), secret) {
		t.Errorf("gob: %q, %v", b.String(), err)
	}
	if got := fmt.Sprintf("%v|%+v|%#v|%s|%q|%x|%d|%08.3f", s, s, s, s, s, s, s, s); got != strings.Repeat("[secret]|", 7)+"[secret]" {
		t.Error(got)
	}
	for name, encode := range map[string]func() ([]byte, error){"json": s.MarshalJSON, "text": s.MarshalText} {
		if b, err := encode(); err != nil || strings.Trim(string(b), `"`) != "[secret]" {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if s.String() != "[secret]" || s.GoString() != "[secret]" || s.LogValue().String() != "[secret]" || (connections.Secret{}).String() != "[secret]" {
		t.Error(s.String(), s.GoString(), s.LogValue())
	}
}

func TestASecretIsWhatItWasGiven(t *testing.T) {
	given := []byte{0, 1, 0xff}
	s := connections.NewSecret(given)
	given[0] = 7
	s.Reveal()[1] = 7
	if got := s.Reveal(); !bytes.Equal(got, []byte{0, 1, 0xff}) || s.Len() != 3 || s.IsZero() {
		t.Errorf("% x", got)
	}
	for _, none := range []connections.Secret{{}, connections.NewSecret(nil), connections.NewSecret([]byte{})} {
		if none.Reveal() != nil || none.Len() != 0 || !none.IsZero() || !none.Equal(connections.Secret{}) || none.Equal(s) {
			t.Error("none is something")
		}
	}
	if other := connections.NewSecret([]byte{0, 1, 0xff}); !s.Equal(other) || !reflect.DeepEqual(s, other) || s.Equal(connections.NewSecret([]byte{0, 1, 0xfe})) || s.Equal(connections.NewSecret([]byte{0, 1})) {
		t.Error("equal ones are not, or others are")
	}
	// What a secret shows of itself is not taken for one.
	var c connections.Connection
	if err := json.Unmarshal([]byte(`{"Secret": "[secret]"}`), &c); err == nil {
		t.Error("it was decoded")
	}
}
