//go:build unix

package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePrograms makes a folder with programs that answer --version.
func fakePrograms(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// onlyIn has programs looked for in the given places and nowhere else.
func onlyIn(t *testing.T, patterns ...string) {
	t.Helper()
	old := places
	t.Cleanup(func() { places = old })
	places = patterns
	t.Setenv(EnvBinDir, "")
	t.Setenv("PATH", "/bin:/usr/bin")
}

func TestFindBinDir(t *testing.T) {
	root := t.TempDir()
	for _, major := range []string{"9", "14", "15", "100"} {
		fakePrograms(t, filepath.Join(root, "pg", major, "bin"), major+".1")
	}
	if err := os.Remove(filepath.Join(root, "pg", "100", "bin", "initdb")); err != nil { // a client's package alone
		t.Fatal(err)
	}
	onlyIn(t, filepath.Join(root, "none", "*"), filepath.Join(root, "pg", "*", "bin"))
	find := func(want string) {
		t.Helper()
		if got, err := FindBinDir(); err != nil || got != want {
			t.Errorf("%s, %v; not %s", got, err, want)
		}
	}
	find(filepath.Join(root, "pg", "15", "bin"))

	places = nil
	if _, err := FindBinDir(); !errors.Is(err, ErrNoPrograms) {
		t.Errorf("no programs: %v", err)
	}
	link := filepath.Join(root, "links")
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "pg", "14", "bin", "initdb"), filepath.Join(link, "initdb")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", link)
	find(filepath.Join(root, "pg", "14", "bin"))

	t.Setenv(EnvBinDir, filepath.Join(root, "pg", "9", "bin"))
	find(filepath.Join(root, "pg", "9", "bin"))

	t.Setenv(EnvBinDir, link)
	if _, err := FindBinDir(); err == nil || !strings.Contains(err.Error(), EnvBinDir) || errors.Is(err, ErrNoPrograms) {
		t.Errorf("a wrong %s: %v", EnvBinDir, err)
	}
}

func TestFindProgram(t *testing.T) {
	root := t.TempDir()
	onlyIn(t, filepath.Join(root, "*", "bin"))
	t.Setenv("PATH", filepath.Join(root, "path"))
	write := func(p, script string) string {
		p = filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("14/bin/pgbench", "exit 127") // its library is missing
	write("path/none", "exit 127")
	for _, p := range []string{"14/bin/psql", "15/bin/pgbench", "14/lib/pgxs/src/test/isolation/isolationtester", "path/other"} {
		p = write(p, "exit 0")
		if got, err := FindProgram(filepath.Base(p)); err != nil || got != p {
			t.Errorf("%s, %v; not %s", got, err, p)
		}
	}
	if p, err := FindProgram("none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%s, %v", p, err)
	}
}

func TestTooOldServerIsRefused(t *testing.T) {
	tempFolder(t)
	dir := filepath.Join(os.Getenv("TMPDIR"), "old")
	fakePrograms(t, dir, "13.21")
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	_, err := Start(deadline(t), Options{BinDir: dir})
	if err == nil || !strings.Contains(err.Error(), "13.21") || !strings.Contains(err.Error(), "14 or later") {
		t.Errorf("%v", err)
	}
}

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n": "15.14",
		"postgres (PostgreSQL) 18beta2\n":                        "18beta2",
		"postgres (PostgreSQL) 17.5\n":                           "17.5",
	} {
		if v, major, err := parseVersion(out); v != want || !strings.HasPrefix(want, string(rune('0'+major/10))+string(rune('0'+major%10))) || err != nil {
			t.Errorf("%q: %s, %d, %v", out, v, major, err)
		}
	}
	if _, _, err := parseVersion("oil painting"); err == nil {
		t.Error("no error without a version")
	}
}
