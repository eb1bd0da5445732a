package explaintest

import "strings"

// Name is the name of a relation or an index. Without a schema it stands for that name in any.
type Name struct{ Schema, Name string }

// ParseName reads "table", "schema.table" or, where a name holds a dot or a quote, `"my.schema"."table"`. Letters keep
// their case whether quoted or not.
func ParseName(s string) Name {
	first, rest := cutName(s)
	if rest == "" {
		return Name{Name: first}
	}
	second, _ := cutName(rest)
	return Name{first, second}
}

// cutName takes a name off the front, up to a dot outside quotes.
func cutName(s string) (name, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"' && quoted && i+1 < len(s) && s[i+1] == '"':
			b.WriteByte('"')
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '.' && !quoted:
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// String is the name as people write it, without quotes.
func (n Name) String() string {
	if n.Schema == "" {
		return n.Name
	}
	return n.Schema + "." + n.Name
}

// fits says whether the name n, with or without a schema, can stand for m. A plan that was not VERBOSE has no schemas.
func (n Name) fits(m Name) bool {
	return n.Name == m.Name && (n.Schema == "" || m.Schema == "" || n.Schema == m.Schema)
}
