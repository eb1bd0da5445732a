package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// folder is the place of one server: ours on the outside, so that nobody else
// can swap what we remove, and the server user's own in "pg" within.
type folder struct {
	dir     string // ours
	home    string // the server's: data, log and socket
	unwatch func()
}

func newFolder() (_ *folder, err error) {
	dir, err := os.MkdirTemp(tempParent(), "prunectl-pg-")
	if err != nil {
		return nil, fmt.Errorf("make the server's folder: %w", err)
	}
	f := &folder{dir: dir, home: filepath.Join(dir, "pg"), unwatch: func() {}}
	defer func() {
		if err != nil {
			_ = f.remove()
		}
	}()
	if f.unwatch, err = startWatcher(dir); err != nil {
		f.unwatch = func() {}
		return nil, fmt.Errorf("start the watcher of the server's folder: %w", err)
	}
	if os.Geteuid() == 0 { // MkdirTemp's 0700 would keep the server's user out
		if err = os.Chmod(dir, 0o711); err != nil {
			return nil, err
		}
	}
	if err = os.Mkdir(f.home, 0o700); err != nil {
		return nil, err
	}
	return f, chown(f.home)
}

// remove removes the folder, whose server has ended. The last of the server's
// children may still write for a moment after it.
func (f *folder) remove() error {
	err := os.RemoveAll(f.dir)
	for n := 0; err != nil && n < 20; n++ {
		time.Sleep(50 * time.Millisecond)
		err = os.RemoveAll(f.dir)
	}
	f.unwatch()
	return err
}

// tempParent is the folder for temporary files, or /tmp where that one will
// not do: a socket's path holds 103 bytes at most, and a root's private folder
// keeps the server's user out.
func tempParent() string {
	dir := os.TempDir()
	if filepath.Separator != '/' {
		return dir
	}
	const socket = "/prunectl-pg-1234567890/pg/.s.PGSQL.65535"
	if len(dir)+len(socket) > 103 {
		return "/tmp"
	}
	if os.Geteuid() != 0 {
		return dir
	}
	for p := dir; ; p = filepath.Dir(p) {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if p == filepath.Dir(p) {
			return dir
		}
	}
}
