package pgxplan_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?s)```(go|text)\n(.*?)```")

// TestDocumented holds that the code and the output in docs/explaintest.md are those of the examples that run here, and that
// each rule and each call is there.
func TestDocumented(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	doc := read("../../docs/explaintest.md")
	code := read("example_test.go") + read("../example_test.go")
	output := regexp.MustCompile(`(?m)^\t// ?`).ReplaceAllString(code, "")
	blocks := block.FindAllStringSubmatch(doc, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of code or output", len(blocks))
	}
	for _, b := range blocks {
		in := code
		if b[1] == "text" {
			in = output
		}
		if !strings.Contains(in, b[2]) {
			t.Errorf("no example has this:\n%s", b[2])
		}
	}
	exported := regexp.MustCompile(`(?m)^func (?:\(\w+ (?:IndexRule|ScanRule)\) )?([A-Z]\w*)\(`)
	for _, name := range []string{"../index.go", "../scans.go", "../cost.go", "../check.go", "../parse.go", "explain.go", "fill.go", "control.go"} {
		for _, f := range exported.FindAllStringSubmatch(read(name), -1) {
			if f[1] != "String" && !regexp.MustCompile(`\b`+f[1]+`\b`).MatchString(doc) {
				t.Errorf("docs/explaintest.md does not speak of %s", f[1])
			}
		}
	}
}
