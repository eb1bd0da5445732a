// Package surface reads what a package offers, for the tests that hold that what
// records has no way to remove. It reads sources and types, and judges
// by names and by the words of SQL.
package surface

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// removing are the words for taking something out of a log.
var removing = []string{"delete", "remove", "prune", "truncate", "purge"}

// Removes returns the word in name that says that it removes something, "" where
// there is none.
func Removes(name string) string {
	for _, word := range removing {
		if strings.Contains(strings.ToLower(name), word) {
			return word
		}
	}
	return ""
}

// Methods returns the names of the exported methods of a type.
func Methods(t reflect.Type) []string {
	var names []string
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	return names
}

// Exported returns every exported name that the package in a folder declares:
// constants, variables, functions and types, and with their type's name before
// them methods and fields.
func Exported(folder string) ([]string, error) {
	var names []string
	add := func(owner, name string) {
		if ast.IsExported(name) {
			names = append(names, strings.TrimPrefix(owner+"."+name, "."))
		}
	}
	err := each(folder, func(file *ast.File) {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				owner := ""
				if d.Recv != nil {
					owner = receiver(d.Recv.List[0].Type)
				}
				add(owner, d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add("", n.Name)
						}
					case *ast.TypeSpec:
						add("", s.Name.Name)
						ast.Inspect(s.Type, func(n ast.Node) bool {
							if f, ok := n.(*ast.Field); ok {
								for _, name := range f.Names {
									add(s.Name.Name, name.Name)
								}
							}
							return true
						})
					}
				}
			}
		}
	})
	return names, err
}

// Identifiers returns every identifier in the package in a folder, whatever it names.
func Identifiers(folder string) ([]string, error) {
	var all []string
	err := each(folder, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				all = append(all, id.Name)
			}
			return true
		})
	})
	return all, err
}

// Literals returns every string literal of the package in a folder.
func Literals(folder string) ([]string, error) {
	var all []string
	err := each(folder, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					all = append(all, s)
				}
			}
			return true
		})
	})
	return all, err
}

// Imports returns the paths that the package in a folder imports.
func Imports(folder string) ([]string, error) {
	var all []string
	err := each(folder, func(file *ast.File) {
		for _, i := range file.Imports {
			if s, err := strconv.Unquote(i.Path.Value); err == nil {
				all = append(all, s)
			}
		}
	})
	return all, err
}

// each parses the files of a package that are no tests.
func each(folder string, f func(*ast.File)) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, e.Name()), nil, 0)
		if err != nil {
			return err
		}
		f(file)
	}
	return nil
}

func receiver(t ast.Expr) string {
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
