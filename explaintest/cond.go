package explaintest

import (
	"slices"
	"strings"
)

// kind is what a condition says of an index column.
type kind int

const (
	other kind = iota // nothing that bounds a B-tree: IS NOT NULL, @>
	equal             // =, = ANY, IS NULL
	above             // >, >=
	below             // <, <=
)

// bound is one condition of an Index Cond on an index's keys.
type bound struct {
	keys [][]string // one, or those of a row comparison; each in the spellings that it may have in the catalog
	kind kind
}

// bounds reads an Index Cond: terms joined by AND, with the index's key on the left of each, as the server prints every
// condition on an index.
func bounds(cond string) (bs []bound) {
	var term func(ts []string)
	term = func(ts []string) {
		ts = unwrap(ts)
		if parts := split(ts, "AND"); len(parts) > 1 {
			for _, p := range parts {
				term(p)
			}
			return
		}
		if b, ok := readTerm(ts); ok {
			bs = append(bs, b)
		}
	}
	term(lex(cond))
	return bs
}

// readTerm reads "key operator something".
func readTerm(ts []string) (b bound, ok bool) {
	depth, at := 0, -1
	for i, t := range ts {
		depth += nesting(t)
		if depth == 0 && i > 0 && (isOperator(t) || t == "IS" || t == "OPERATOR") {
			at = i
			break
		}
	}
	if at < 0 {
		return b, false
	}
	left, right := ts[:at], ts[at+1:]
	switch op := ts[at]; op {
	case "IS":
		if slices.Equal(right, []string{"NULL"}) {
			b.kind = equal
		}
	case "OPERATOR": // OPERATOR(schema.=)
		if end := slices.Index(right, ")"); end > 0 {
			b.kind = kindOf(right[end-1])
		}
	default:
		b.kind = kindOf(op)
	}
	if len(left) > 2 && left[0] == "ROW" && left[1] == "(" {
		for _, k := range split(unwrap(left[1:]), ",") {
			b.keys = append(b.keys, spellings(k))
		}
	} else {
		b.keys = [][]string{spellings(left)}
	}
	return b, true
}

func kindOf(op string) kind {
	switch strings.Trim(op, "~") { // ~>=~ and its like are the operators of text patterns
	case "=":
		return equal
	case ">", ">=":
		return above
	case "<", "<=":
		return below
	}
	return other
}

// spellings are a key as it stands, and without its casts: a varchar column is compared as (name)::text.
func spellings(ts []string) (s []string) {
	for {
		ts = unwrap(ts)
		s = append(s, canonical(ts))
		depth, cut := 0, -1
		for i, t := range ts {
			if depth += nesting(t); depth == 0 && i > 0 && (t == "::" || t == "COLLATE") {
				cut = i
			}
		}
		if cut < 0 {
			return s
		}
		ts = ts[:cut]
	}
}

// key is a column's name or an index's expression in the one spelling that comparisons here use.
func key(text string) string { return canonical(unwrap(lex(text))) }

// canonical joins tokens, without the aliases before columns, which the catalog does not have.
func canonical(ts []string) string {
	var out []string
	for i := 0; i < len(ts); i++ {
		if i+2 < len(ts) && ts[i+1] == "." && isName(ts[i]) && (i+3 == len(ts) || ts[i+3] != "(") {
			i++
			continue
		}
		out = append(out, ts[i])
	}
	if len(out) == 1 && isName(out[0]) {
		name, _ := cutName(out[0])
		return name
	}
	return strings.Join(out, " ")
}

// unwrap takes off parentheses around the whole.
func unwrap(ts []string) []string {
	for len(ts) > 1 && ts[0] == "(" {
		depth := 0
		for i, t := range ts {
			if depth += nesting(t); depth == 0 {
				if i < len(ts)-1 {
					return ts
				}
				break
			}
		}
		if depth != 0 {
			return ts
		}
		ts = ts[1 : len(ts)-1]
	}
	return ts
}

// split cuts tokens at a separator outside of parentheses.
func split(ts []string, at string) (parts [][]string) {
	depth, from := 0, 0
	for i, t := range ts {
		if depth += nesting(t); depth == 0 && t == at {
			parts = append(parts, ts[from:i])
			from = i + 1
		}
	}
	return append(parts, ts[from:])
}

func nesting(t string) int {
	switch t {
	case "(", "[":
		return 1
	case ")", "]":
		return -1
	}
	return 0
}

const operatorChars = "+-*/<>=~!@#%^&|`?"

func isOperator(t string) bool { return t != "" && strings.Contains(operatorChars, t[:1]) }
func isName(t string) bool     { return t != "" && (t[0] == '"' || wordByte(t[0])) }

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex cuts an expression as the server prints it into words, quoted names, strings, operators and single signs.
func lex(s string) (ts []string) {
	for i := 0; i < len(s); {
		from := i
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case c == '\'' || c == '"':
			i = closing(s, i)
		case wordByte(c):
			for i < len(s) && wordByte(s[i]) {
				i++
			}
		case strings.IndexByte(operatorChars, c) >= 0:
			for i < len(s) && strings.IndexByte(operatorChars, s[i]) >= 0 {
				i++
			}
		case strings.HasPrefix(s[i:], "::"):
			i += 2
		default:
			i++
		}
		ts = append(ts, s[from:i])
	}
	return ts
}

// closing is the place behind the quote that ends the one at i. Quotes inside are doubled, as are the backslashes of E”.
func closing(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}
