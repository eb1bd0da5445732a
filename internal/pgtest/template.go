package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// Template is a database that is built once for each test binary, when it is
// first used, and cloned for each test.
type Template struct {
	name  string
	build func(ctx context.Context, dsn string) error
	once  sync.Once
	db    string
	err   error
}

// NewTemplate declares a template. It is meant for a package's variable:
// nothing runs before the first New. build fills the database of a superuser's
// connection string, and closes every connection that it opens.
func NewTemplate(name string, build func(ctx context.Context, dsn string) error) *Template {
	return &Template{name: name, build: build}
}

// New makes a clone of the template, which is dropped when the test ends.
func (tpl *Template) New(t testing.TB) *DB {
	t.Helper()
	in := need(t)
	if tpl.once.Do(func() { tpl.err = tpl.make(in) }); tpl.err != nil {
		t.Fatalf("pgtest: template %s: %v", tpl.name, tpl.err)
	}
	return in.clone(t, tpl.db)
}

func (tpl *Template) make(in *instance) error {
	db, err := in.database(nameFor("template " + tpl.name))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*callTimeout)
	defer cancel()
	if err := in.exec(ctx, "create database "+ident(db.Name)+" template template0"); err != nil {
		return err
	}
	if in.own == nil { // a server of our own takes it along
		atEnd(func() error { return in.drop(db.Name) })
	}
	if err := tpl.build(ctx, db.DSN); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	// Cloning is refused while anybody is connected; now nobody can be.
	if err := in.exec(ctx, "alter database "+ident(db.Name)+" with allow_connections false"); err != nil {
		return err
	}
	tpl.db = db.Name
	return nil
}
