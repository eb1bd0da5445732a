package place

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Population is a database to be built once and cloned.
type Population struct {
	Name string // in words_with_underscores; two populations of one name are the same
	// Fill fills the empty database. It is vacuumed and analysed after it.
	Fill func(ctx context.Context, config *pgx.ConnConfig) error
	On   *Population // what it is filled on top of; nil: nothing
}

// template is the database of the population, built if it was not yet.
func (p *Place) template(ctx context.Context, pop Population) (string, error) {
	if name, ok := p.templates[pop.Name]; ok {
		return name, nil
	}
	base := "template0"
	if pop.On != nil {
		var err error
		if base, err = p.template(ctx, *pop.On); err != nil {
			return "", err
		}
	}
	start := time.Now()
	name, err := p.create(ctx, pop.Name, base)
	if err == nil {
		err = pop.Fill(ctx, p.to(name))
	}
	if err == nil {
		err = p.within(ctx, name, "VACUUM (ANALYZE)", "CREATE EXTENSION IF NOT EXISTS pg_prewarm")
	}
	if err != nil {
		return "", fmt.Errorf("build population %s: %w", pop.Name, err)
	}
	p.templates[pop.Name] = name
	p.tell("population %s built in %s", pop.Name, time.Since(start).Round(100*time.Millisecond))
	return name, nil
}

func (p *Place) within(ctx context.Context, database string, sqls ...string) error {
	conn, err := pgx.ConnectConfig(ctx, p.to(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range sqls {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Clone is a fresh copy of a population.
type Clone struct {
	Name  string
	place *Place
	conns []*pgx.Conn
}

// warm reads every table and index of the clone into the server's buffers: a population that does not fit them is as cold
// for one subject as for the next.
const warm = `SELECT count(pg_prewarm(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'i', 't') AND n.nspname <> 'information_schema'`

// Clone copies a population, reads it into the server's buffers, and writes a checkpoint: the same beginning for each
// subject. prepare is run on it before that, a statement each.
func (p *Place) Clone(ctx context.Context, pop Population, prepare ...string) (*Clone, error) {
	template, err := p.template(ctx, pop)
	if err != nil {
		return nil, err
	}
	p.clones++
	name, err := p.create(ctx, fmt.Sprintf("clone_%d", p.clones), template)
	if err != nil {
		return nil, err
	}
	c := &Clone{Name: name, place: p}
	if err := p.within(ctx, name, append(slices.Clone(prepare), warm, "CHECKPOINT")...); err != nil {
		_ = c.Drop(ctx)
		return nil, fmt.Errorf("prepare a clone of %s: %w", pop.Name, err)
	}
	return c, nil
}

// Config leads to the clone.
func (c *Clone) Config() *pgx.ConnConfig { return c.place.to(c.Name) }

// Connect connects to the clone. The connection is closed with the clone.
func (c *Clone) Connect(ctx context.Context, change ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	config := c.Config()
	for _, f := range change {
		f(config)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// Exec runs statements on the clone, each on its own.
func (c *Clone) Exec(ctx context.Context, sqls ...string) error {
	return c.place.within(ctx, c.Name, sqls...)
}

// Drop drops the clone.
func (c *Clone) Drop(ctx context.Context) error {
	for _, conn := range c.conns {
		_ = conn.Close(ctx)
	}
	_, err := c.place.desk.Exec(ctx, "DROP DATABASE IF EXISTS "+ident(c.Name)+" WITH (FORCE)")
	if err != nil {
		return fmt.Errorf("drop database %s: %w", c.Name, err)
	}
	c.place.made = slices.DeleteFunc(c.place.made, func(name string) bool { return name == c.Name })
	return nil
}
