package policyfile

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/prunectl/prunectl/policy"
)

// scalarType is what a scalar is by the core rules of YAML 1.2: only what is not quoted can be anything but text.
type scalarType int

const (
	text scalarType = iota
	null
	boolean
	integer
	float
	odd // a number, true or null in a spelling that readers disagree on
)

// The spellings that YAML 1.2 core reads as something else than text. Those outside the first of each pair are odd:
// 010 is ten to one reader and eight to another, 1_000 and 0b1 are numbers to some.
var (
	plainInt   = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	oddInt     = regexp.MustCompile(`^[-+]?([0-9][0-9_]*|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)$`)
	plainFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)
	oddNull    = regexp.MustCompile(`^(Null|NULL|~)$`)
	oddBool    = regexp.MustCompile(`^(True|TRUE|False|FALSE)$`)
)

func (n *node) typ() scalarType {
	switch {
	case n.quoted:
		return text
	case n.text == "" || n.text == "null":
		return null
	case n.text == "true" || n.text == "false":
		return boolean
	case plainInt.MatchString(n.text):
		return integer
	case oddInt.MatchString(n.text) || oddNull.MatchString(n.text) || oddBool.MatchString(n.text):
		return odd
	case plainFloat.MatchString(n.text):
		return float
	}
	return text
}

// found says what stands there, for a message.
func (n *node) found() string {
	switch {
	case n.kind == mapping && len(n.entries) == 0:
		return "an empty mapping"
	case n.kind == mapping:
		return "a mapping"
	case n.kind == list && len(n.items) == 0:
		return "an empty list"
	case n.kind == list:
		return "a list"
	case n.missing():
		return "nothing"
	}
	switch n.typ() {
	case null, boolean:
		return n.text
	case integer, float:
		return "the number " + n.text
	case odd:
		return n.text
	}
	return "the text " + strconv.Quote(n.text)
}

// missing reports whether there is a key, and nothing behind it.
func (n *node) missing() bool { return n.kind == scalar && n.text == "" && !n.quoted }

// value is the scalar as a state or a value of a match. What is refused, and what to write, is the second result.
func (n *node) value() (policy.Value, string) {
	if n.kind != scalar {
		return policy.Null, fmt.Sprintf("found %s; write a text, a whole number, true or false", n.found())
	}
	switch n.typ() {
	case null:
		return policy.Null, ""
	case boolean:
		return policy.Bool(n.text == "true"), ""
	case integer:
		i, err := strconv.ParseInt(n.text, 10, 64)
		if err != nil {
			return policy.Null, fmt.Sprintf("%s is too large for a whole number here; write it in quotes", n.text)
		}
		return policy.Int(i), ""
	case float:
		return policy.Null, fmt.Sprintf("%s is not a whole number; if it is a text, write it in quotes", n.text)
	case odd:
		return policy.Null, fmt.Sprintf("%s is read in several ways; write a plain number, true, false or null, or a text in quotes", n.text)
	}
	return policy.Text(n.text), ""
}

var plainKey = regexp.MustCompile(`^[^\s"'\pC]([^"'\pC]*[^\s"'\pC])?$`)

// printable is s for a message: as it is, or quoted where that could be misread or would break the line.
func printable(s string) string {
	if plainKey.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// source is the scalar as it could be written in the file.
func (n *node) source() string {
	if n.quoted {
		return strconv.Quote(n.text)
	}
	return n.text
}
