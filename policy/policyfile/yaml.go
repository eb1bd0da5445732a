package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxSize  = 1 << 18 // of a file, in bytes: some thousand sweeps
	maxDepth = 32      // of lists and mappings in each other; the reader recurses, and the language needs 6
)

// node is a value of the file with its place: what is left of YAML once everything is refused that the language does not
// have.
type node struct {
	kind    kind
	at      place
	text    string // of a scalar
	quoted  bool
	entries []entry // of a mapping
	items   []*node // of a list
}

type kind int

const (
	scalar kind = iota
	mapping
	list
	refused // it was reported already
)

type entry struct{ key, value *node }

// yaml reads the bytes into a tree. It returns nil where it reported something that ends the reading.
func (r *reader) yaml(data []byte) *node {
	src, ok := r.characters(data)
	if !ok {
		return nil
	}
	var text lines
	for _, l := range strings.Split(src, "\n") {
		text = append(text, []rune(l))
	}
	f, err := parse(src)
	if err != nil {
		at := place{1, 1}
		var syntax interface {
			GetMessage() string
			GetToken() *token.Token
		}
		message := err.Error()
		if errors.As(err, &syntax) {
			message = syntax.GetMessage()
			if tk := syntax.GetToken(); tk != nil {
				at = text.inside(tk.Position)
			}
		}
		r.fail(at, path{}, "not readable as YAML: %s", oneLine(message))
		return nil
	}
	var root *node
	for _, d := range f.Docs {
		switch {
		case d.Body == nil && d.Start == nil:
		case d.Body != nil && d.Body.Type() == ast.DirectiveType:
			r.fail(text.inside(d.Body.GetToken().Position), path{}, "directives are not part of the language; leave the line out")
			return nil
		case root != nil:
			at := place{1, 1}
			if d.Start != nil {
				at = text.inside(d.Start.Position)
			}
			r.fail(at, path{}, "a second document starts here; write one file for each policy")
			return nil
		case d.Body != nil:
			root = (&converter{r: r, lines: text}).node(d.Body, path{})
		}
	}
	if root == nil {
		r.fail(place{1, 1}, path{}, "the file is empty; start it with version: 1")
	}
	return root
}

// characters refuses what is no text of a policy file and returns the rest with line feeds alone.
func (r *reader) characters(data []byte) (string, bool) {
	at := place{1, 1}
	fail := func(format string, args ...any) (string, bool) {
		r.fail(at, path{}, format, args...)
		return "", false
	}
	switch {
	case len(data) > maxSize:
		return fail("the file has %d bytes; a policy has at most %d", len(data), maxSize)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return fail("the file starts with a byte order mark; save it as UTF-8 without one")
	case len(bytes.TrimSpace(data)) == 0:
		return fail("the file is empty; start it with version: 1")
	}
	src := strings.ReplaceAll(string(data), "\r\n", "\n")
	for i, c := range src {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(src[i:], string(utf8.RuneError)):
			return fail("byte %#x is not UTF-8; save the file as UTF-8", src[i])
		case c == '\t':
			return fail("a tab; write spaces")
		case c != '\n' && unicode.IsControl(c) || c == 0x2028 || c == 0x2029 || c == 0xfeff:
			return fail("the control character %U; leave it out", c)
		}
		if at.column++; c == '\n' {
			at = place{at.line + 1, 1}
		}
	}
	return src, true
}

// parse calls the YAML reader. It is not ours, so a panic in it is a file that it cannot read and not the end of the run.
func parse(src string) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("the reader gave up (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(src)
	if tk := tooDeep(tokens); tk != nil {
		return nil, &depthError{tk}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

type depthError struct{ tk *token.Token }

func (e *depthError) Error() string          { return e.GetMessage() }
func (e *depthError) GetMessage() string     { return "lists and mappings are nested too deeply" }
func (e *depthError) GetToken() *token.Token { return e.tk }

// tooDeep returns the token at which the nesting goes too deep: in brackets, by indentation, or in entries on one line.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, entries, line := 0, 0, 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			if tk.Position.Line != line {
				line, entries = tk.Position.Line, 0
			}
			if brackets == 0 {
				entries++
			}
		}
		if brackets > maxDepth || entries > maxDepth || tk.Position.IndentLevel > maxDepth {
			return tk
		}
	}
	return nil
}

// lines are those of the file.
type lines [][]rune

// inside is the position, moved into the file where the reader points past its end.
func (ls lines) inside(p *token.Position) place {
	if p == nil {
		return place{1, 1}
	}
	line := min(max(p.Line, 1), len(ls))
	return place{line, min(max(p.Column, 1), len(ls[line-1])+1)}
}

func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, s)
}

// converter turns the reader's tree into nodes and refuses what the language does not have.
type converter struct {
	r     *reader
	lines lines
	flow  int // how many brackets are open
}

func (c *converter) refuse(n ast.Node, p path, format string, args ...any) *node {
	at := c.at(n)
	c.r.fail(at, p, format, args...)
	return &node{kind: refused, at: at}
}

func (c *converter) at(n ast.Node) place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return c.at(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return c.at(n.Key)
	}
	if tk := n.GetToken(); tk != nil {
		return c.lines.inside(tk.Position)
	}
	return place{1, 1}
}

func (c *converter) node(n ast.Node, p path) *node {
	switch n := n.(type) {
	case *ast.MappingNode:
		defer c.enter(n.IsFlowStyle)()
		return c.mapping(n, n.Values, p)
	case *ast.MappingValueNode:
		return c.mapping(n, []*ast.MappingValueNode{n}, p)
	case *ast.SequenceNode:
		defer c.enter(n.IsFlowStyle)()
		out := &node{kind: list, at: c.at(n)}
		for _, v := range n.Values {
			out.items = append(out.items, c.node(v, p))
		}
		return out
	case *ast.AnchorNode:
		return c.refuse(n, p, "anchors (&) are not part of the language; write each sweep out")
	case *ast.AliasNode:
		return c.refuse(n, p, "aliases (*) are not part of the language; write each sweep out, and a text that starts with * in quotes")
	case *ast.TagNode:
		return c.refuse(n, p, "tags (!) are not part of the language; write the value alone, and a text that starts with ! in quotes")
	case *ast.LiteralNode:
		return c.scalar(n, p, n.Value.Value, true)
	case *ast.StringNode:
		return c.scalar(n, p, n.Value, n.Token.Type != token.StringType)
	case ast.ScalarNode:
		tk := n.GetToken()
		if tk.Type == token.ImplicitNullType {
			return c.scalar(n, p, "", false)
		}
		return c.scalar(n, p, tk.Value, false)
	}
	return c.refuse(n, p, "found a %s, which is not part of the language", strings.ToLower(n.Type().String()))
}

// enter counts an open bracket until the function that it returns is called.
func (c *converter) enter(flow bool) func() {
	if !flow {
		return func() {}
	}
	c.flow++
	return func() { c.flow-- }
}

// loose reports whether the reader took for a text what YAML does not: it lets brackets and colons pass that stand where
// they should not, and then a comma that was forgotten makes one value of two.
func (c *converter) loose(s string) bool {
	return strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || s != "" && strings.ContainsAny(s[:1], ":[]{},") ||
		c.flow > 0 && strings.ContainsAny(s, "[]{},")
}

// glued reports whether a colon between brackets has its value right behind it: {a:b} is the key "a:b" to other readers.
func (c *converter) glued(v *ast.MappingValueNode) bool {
	if c.flow == 0 || v.Start.Type != token.MappingValueType {
		return false
	}
	if quoted := v.Key.GetToken().Type; quoted == token.SingleQuoteType || quoted == token.DoubleQuoteType {
		return false
	}
	at := c.lines.inside(v.Start.Position)
	behind := c.lines[at.line-1][at.column-1:]
	return len(behind) > 1 && behind[0] == ':' && !strings.ContainsRune(" ,[]{}", behind[1])
}

func (c *converter) scalar(n ast.Node, p path, s string, quoted bool) *node {
	switch {
	case strings.Contains(s, "${"):
		return c.refuse(n, p, "%q asks for a variable, and nothing is put in; write the value itself", s)
	case strings.ContainsFunc(s, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }):
		return c.refuse(n, p, "%q holds a control character; leave it out", s)
	case !quoted && c.loose(s):
		return c.refuse(n, p, "%q is no text without quotes; put it in quotes, or see whether a comma or a bracket is missing", s)
	}
	return &node{kind: scalar, at: c.at(n), text: s, quoted: quoted}
}

func (c *converter) mapping(n ast.Node, values []*ast.MappingValueNode, p path) *node {
	out := &node{kind: mapping, at: c.at(n)}
	first := map[string]place{}
	for _, v := range values {
		key := c.key(v.Key, p)
		value := c.node(v.Value, p.child(key.text))
		if value.missing() {
			value.at = key.at // there is nothing to point at
		}
		if key.kind == refused {
			continue
		}
		if c.glued(v) {
			c.r.fail(c.at(v.Key), p.child(key.text), "there is no blank behind the colon; write %s: and the value", printable(key.text))
		}
		if before, ok := first[key.text]; ok {
			c.r.fail(key.at, p, "key %s stands here and in line %d; keep one of them", printable(key.text), before.line)
			continue
		}
		first[key.text] = key.at
		out.entries = append(out.entries, entry{key, value})
	}
	if len(out.entries) == 0 && len(values) > 0 {
		out.kind = refused // not empty, only nothing in it is left
	}
	return out
}

func (c *converter) key(k ast.MapKeyNode, p path) *node {
	switch k.(type) {
	case *ast.MergeKeyNode:
		return c.refuse(k, p, "merge keys (<<) are not part of the language; write each sweep out")
	case *ast.MappingKeyNode:
		return c.refuse(k, p, "a key behind a question mark is not part of the language; write key: value")
	}
	if n := c.node(k, p); n.kind == scalar || n.kind == refused {
		return n
	}
	return c.refuse(k, p, "a list or a mapping is no key")
}
