package pgtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// envLeave has TestLeaving leave something behind, in a process of its own.
const envLeave = "PGTEST_LEAVE"

// TestLeaving leaves what it is told to. On its own it leaves nothing.
func TestLeaving(t *testing.T) {
	db := pgtest.New(t)
	switch os.Getenv(envLeave) {
	case "a goroutine":
		go func() { select {} }()
	case "a session":
		if _, err := pgx.Connect(t.Context(), db.DSN); err != nil {
			t.Fatal(err)
		}
	case "a session on purpose":
		db.Abandon()
		if _, err := pgx.Connect(t.Context(), db.DSN); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatIsLeftIsAFailure has test binaries end with something left, and with nothing.
func TestWhatIsLeftIsAFailure(t *testing.T) {
	for what, says := range map[string]string{"nothing": "", "a session on purpose": "", "a goroutine": "pgtest_test.TestLeaving.func1", "a session": "sessions are left in the test's database"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			out, err := again(t, "TestLeaving", envLeave+"="+what)
			if (err != nil) != (says != "") || !strings.Contains(out, says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
