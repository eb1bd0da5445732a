package pgtest

import (
	"context"
	"sync"
	"testing"

	"github.com/prunectl/prunectl/internal/pgserver"
)

// template is a data folder that is never started, for servers of a test's
// own: a copy is made in half the time of initdb, and standbys need it.
var template = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	data, remove, err := pgserver.NewTemplate(ctx, pgserver.Options{})
	if err == nil {
		atEnd(remove)
	}
	return data, err
})

// Own starts a server of the test's own, from local server programs, for kills,
// restarts and standbys; it is stopped when the test ends. o.Settings come on
// top of the settings that every server here has. Servers with neither
// programs, superuser nor initdb arguments of their own are copies of one data
// folder, so StandbyOf works among them as it is.
func Own(t testing.TB, o pgserver.Options) *pgserver.Server {
	t.Helper()
	if o.Template == "" && o.BinDir == "" && o.Superuser == "" && o.Password == "" && len(o.InitArgs) == 0 {
		data, err := template()
		if err != nil {
			t.Fatalf("pgtest: a server of the test's own: %v", err)
		}
		o.Template = data
	}
	o.Settings = append(append([]string{"shared_buffers=64MB"}, settings...), o.Settings...)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := pgserver.Start(ctx, o)
	if err != nil {
		t.Fatalf("pgtest: a server of the test's own: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// BinDir is the folder of the local server programs. It fails the test where
// there are none.
func BinDir(t testing.TB) string {
	t.Helper()
	dir, err := pgserver.FindBinDir()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return dir
}

// Program is the path of one of PostgreSQL's other programs: psql, pgbench or
// isolationtester. It fails the test where it cannot be found.
func Program(t testing.TB, name string) string {
	t.Helper()
	p, err := pgserver.FindProgram(name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return p
}
