package migrations

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"text/template"

	"github.com/jackc/pgx/v5"
)

// dollar quotes the bodies of DO blocks.
const dollar = "$prunectl$"

// functions are those of the SQL files besides the template package's own.
var functions = template.FuncMap{
	"join":    strings.Join,
	"literal": literal,
	"create":  Index.create,
}

// literal renders a text as an SQL literal that no setting of the server reads
// differently.
func literal(text any) string {
	s := fmt.Sprint(text)
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// checkSchema refuses the names that can not stand in a rendered file: the files
// are read line by line, and have dollar quotes.
func checkSchema(name string) error {
	if strings.ContainsAny(name, "\x00\r\n") || strings.Contains(name, dollar) {
		return fmt.Errorf("%w: the name %q has a line break, a zero byte or %s in it", ErrSchema, name, dollar)
	}
	return nil
}

// render returns the text of a version's file for one schema.
func (c *component) render(v version, schema string) ([]byte, error) {
	file := path.Join(c.folder(), v.file)
	t, err := template.New(v.file).Funcs(functions).Option("missingkey=error").ParseFS(files, file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	data := map[string]any{
		"Schema":    pgx.Identifier{schema}.Sanitize(),
		"Name":      schema,
		"Indexes":   v.indexes,
		"Dollar":    dollar,
		"HoldsRows": stateHoldsRows,
	}
	for k, fact := range c.facts {
		data[k] = fact
	}
	var text bytes.Buffer
	if err := t.Execute(&text, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", file, err)
	}
	return text.Bytes(), nil
}

// rendered is the folder of a component as the migration library reads it: the
// files are rendered for one schema when they are opened.
type rendered struct {
	fs.FS
	component *component
	schema    string
}

func (c *component) folderFor(schema string) (fs.FS, error) {
	folder, err := fs.Sub(files, c.folder())
	if err != nil {
		return nil, err
	}
	return rendered{FS: folder, component: c, schema: schema}, nil
}

func (r rendered) Open(name string) (fs.File, error) {
	for _, v := range r.component.versions {
		if v.file != name {
			continue
		}
		text, err := r.component.render(v, r.schema)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		f, err := r.FS.Open(name)
		if err != nil {
			return nil, err
		}
		return renderedFile{File: f, text: bytes.NewReader(text)}, nil
	}
	return r.FS.Open(name)
}

// renderedFile reads the rendered text in place of the file's own.
type renderedFile struct {
	fs.File
	text io.Reader
}

func (f renderedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
