package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// fetchPrograms is the last resort: embedded-postgres downloads the server
// programs and unpacks them into dir. It is used for that alone, and the
// server is started here, because its own start refuses root and leaves a
// server behind when this process is killed. The download is kept in dir too,
// so that nothing stays on the machine. repository is where to fetch from;
// empty is the library's own default.
//
// The library has no call that only unpacks. It is given an encoding that
// initdb refuses, so that its start always ends after unpacking and before
// anything runs.
func fetchPrograms(ctx context.Context, dir, repository string) (bin string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	var log bytes.Buffer
	config := embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.V15).
		Port(uint32(port)).
		RuntimePath(filepath.Join(dir, "unpacked")).
		CachePath(filepath.Join(dir, "cache")).
		Encoding("none").
		Logger(&log)
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	db := embeddedpostgres.NewDatabase(config)
	// It makes a log file among the temporary ones and never removes it.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	defer setenv("TMPDIR", dir)()
	ended := make(chan error, 1)
	go func() { ended <- db.Start() }() // it takes no context
	select {
	case <-ctx.Done():
		return "", fmt.Errorf("fetch PostgreSQL: %w", ctx.Err())
	case err = <-ended:
	}
	if err == nil {
		return "", errors.Join(errors.New("embedded-postgres started a server though it was not to"), db.Stop())
	}
	bin = filepath.Join(dir, "unpacked", "bin")
	if !hasPrograms(bin) {
		return "", fmt.Errorf("%w; fetching them with embedded-postgres failed too: %w", ErrNoPrograms, err)
	}
	// All of it belongs to the server's user, whatever our umask is.
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return chown(path)
	})
	if err != nil {
		return "", fmt.Errorf("give the fetched programs to the server's user: %w", err)
	}
	return bin, nil
}

// setenv sets an environment variable until the returned function is called.
func setenv(key, value string) (restore func()) {
	old, was := os.LookupEnv(key)
	_ = os.Setenv(key, value) // it fails for malformed keys alone
	return func() {
		if was {
			_ = os.Setenv(key, old)
		} else {
			_ = os.Unsetenv(key)
		}
	}
}
