package pgserver

import (
	"context"
	"os"
	"path/filepath"
)

// NewTemplate runs initdb once, for servers that start from copies of one data
// folder: it is quicker than initdb, and a standby needs it. Of the options it
// heeds BinDir, InitArgs, Superuser, Password and Download. remove deletes the
// folder; the servers that were started from it do not need it any more.
func NewTemplate(ctx context.Context, o Options) (data string, remove func() error, err error) {
	f, err := newFolder()
	if err != nil {
		return "", nil, err
	}
	s := &Server{folder: f, opts: o, Data: filepath.Join(f.home, "data")}
	if err = s.findPrograms(ctx); err == nil {
		err = s.initdb(ctx)
	}
	if err != nil {
		_ = f.remove()
		return "", nil, err
	}
	return s.Data, f.remove, nil
}

// initdb makes the data folder. It need not reach the disk: a machine that
// goes down takes the server's purpose with it.
func (s *Server) initdb(ctx context.Context) error {
	args := []string{"-D", s.Data, "-U", s.superuser(), "-E", "UTF8", "--no-locale", "--no-sync"}
	if s.opts.Password == "" {
		args = append(args, "-A", "trust")
	} else {
		file := filepath.Join(s.home, "password")
		if err := s.writeFile(file, s.opts.Password); err != nil {
			return err
		}
		defer func() { _ = os.Remove(file) }()
		args = append(args, "-A", "scram-sha-256", "--pwfile="+file)
	}
	_, err := run(ctx, s.home, filepath.Join(s.BinDir, program("initdb")), append(args, s.opts.InitArgs...)...)
	return err
}

// writeFile writes a file that the server's user owns and nobody else reads.
func (s *Server) writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return chown(path)
}
