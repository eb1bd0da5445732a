package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
)

// EnvBinDir names the environment variable that says where the server
// programs are. It goes before every place that is looked at otherwise.
const EnvBinDir = "PGTEST_BINDIR"

// ErrNoPrograms is returned where no server programs were found.
var ErrNoPrograms = errors.New("no PostgreSQL server programs found: install postgresql, or set " +
	EnvBinDir + " to the folder that has initdb and postgres")

// places are where packages put the server programs. Debian and Postgres.app
// keep several majors side by side and put none of them on PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu, SUSE
	"/usr/pgsql-*/bin",                                   // PostgreSQL's own RPMs
	"/usr/libexec/postgresql*",                           // Alpine
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on ARM
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",    // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                               // built from source
	`C:\Program Files\PostgreSQL\*\bin`,                  // the Windows installer
}

// FindBinDir returns the folder of the local server programs: the one that
// PGTEST_BINDIR names, else that of the highest major version in the places
// where packages put them, else the one on PATH. The error is [ErrNoPrograms],
// or says what is wrong with PGTEST_BINDIR.
func FindBinDir() (string, error) {
	if dir := os.Getenv(EnvBinDir); dir != "" {
		if !hasPrograms(dir) {
			return "", fmt.Errorf("%s=%s: initdb and postgres are not both there", EnvBinDir, dir)
		}
		return filepath.Abs(dir)
	}
	best, major := "", -1
	for _, place := range places {
		dirs, _ := filepath.Glob(place) // the only error is a bad pattern
		for _, dir := range dirs {
			if n := majorIn(dir); n > major && hasPrograms(dir) {
				best, major = dir, n
			}
		}
	}
	if best != "" {
		return best, nil
	}
	if p, err := exec.LookPath(program("initdb")); err == nil {
		// A link on PATH lies elsewhere than the programs that initdb needs.
		if p, err = filepath.EvalSymlinks(p); err == nil && hasPrograms(filepath.Dir(p)) {
			return filepath.Abs(filepath.Dir(p))
		}
	}
	return "", ErrNoPrograms
}

// FindProgram returns the path of one of PostgreSQL's other programs, as psql,
// pgbench or isolationtester: from the folder of the server programs, else
// from any of the places that have them, else from PATH. A client's program
// need not be of the server's version; one that does not run, for want of the
// library that it was built with, is passed over.
func FindProgram(name string) (string, error) {
	var dirs []string
	if dir, err := FindBinDir(); err == nil {
		dirs = append(dirs, dir)
	}
	for _, place := range places {
		more, _ := filepath.Glob(place)
		dirs = append(dirs, more...)
	}
	for _, dir := range dirs {
		// Packages hide isolationtester with the files for building extensions.
		for _, under := range []string{".", "../lib/pgxs/src/test/isolation", "../lib/postgresql/pgxs/src/test/isolation"} {
			if p, err := exec.LookPath(filepath.Join(dir, under, program(name))); err == nil && runs(p) {
				return p, nil
			}
		}
	}
	p, err := exec.LookPath(program(name))
	if err != nil || !runs(p) {
		return "", fmt.Errorf("PostgreSQL's program %s is neither beside server programs nor on PATH: install it, or set %s", name, EnvBinDir)
	}
	return filepath.Abs(p)
}

func runs(path string) bool { return exec.Command(path, "-V").Run() == nil }

var number = regexp.MustCompile(`\d+`)

// majorIn reads the major version out of a folder's name; 0 where it has none.
func majorIn(dir string) int {
	all := number.FindAllString(dir, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program(name))); err != nil {
			return false
		}
	}
	return true
}

func program(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

var versionText = regexp.MustCompile(`PostgreSQL\) ((\d+)\S*)`)

// parseVersion takes "15.14" and 15 from what `postgres --version` prints.
func parseVersion(out string) (version string, major int, err error) {
	m := versionText.FindStringSubmatch(out)
	if m == nil {
		return "", 0, fmt.Errorf("postgres --version printed %q, which has no version in it", out)
	}
	major, err = strconv.Atoi(m[2])
	return m[1], major, err
}
