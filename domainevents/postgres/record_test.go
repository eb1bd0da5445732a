package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/domainevents"
	"github.com/prunectl/prunectl/domainevents/postgres"
)

// What is recorded is what a worker gets, in every mode in which pgx speaks to a server, and in a schema of any name.
func TestWhatIsRecordedIsClaimed(t *testing.T) {
	for _, schema := range []string{"", odd} {
		for _, mode := range []pgx.QueryExecMode{
			pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
			pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
		} {
			t.Run(fmt.Sprintf("%q %s", schema, mode), func(t *testing.T) {
				db := installed.New(t)
				conn := db.Conn(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
				store := postgres.New(postgres.Options{Schema: schema})
				then := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
				drafts := []domainevents.Draft{
					{Type: "plain"},
					{Type: "full", Version: 3, Payload: json.RawMessage(`{"n":[1,"\""]}`), OccurredAt: then, DedupeKey: "it's", Retention: own(t)},
					{Type: "early", Retention: domainevents.UntilSucceeded},
				}
				for i, d := range drafts {
					must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
						done, err := store.Record(bounded(t), tx, d, domainevents.Target{Receiver: "r", Target: "t", DueAt: then.Add(time.Duration(i) * time.Second)}, domainevents.Target{Receiver: "later", DueAt: time.Now().Add(time.Hour)})
						if !done.New || done.Event == 0 {
							t.Errorf("recorded %+v", done)
						}
						return err
					}))
				}
				all, err := store.Claim(bounded(t), conn, "w", time.Minute, 10)
				must(t, err)
				if len(all) != len(drafts) {
					t.Fatalf("%d deliveries, want %d", len(all), len(drafts))
				}
				for i, d := range all {
					want := drafts[i]
					e := d.Event
					if e.Type != want.Type || e.Version != max(1, want.Version) || e.DedupeKey != want.DedupeKey || e.Retention != want.Retention {
						t.Errorf("event %+v of %+v", e, want)
					}
					if d.Receiver != "r" || d.Target != "t" || d.Attempts != 1 || !d.DueAt.Equal(then.Add(time.Duration(i)*time.Second)) || d.DueAt.Location() != time.UTC {
						t.Errorf("delivery %+v", d)
					}
					if c := d.Claim; c.By != "w" || c.Until.Sub(c.At) != time.Minute || c.Delivery == 0 {
						t.Errorf("claim %+v", c)
					}
					if age := time.Since(e.RecordedAt); age > time.Minute || e.RecordedAt.Location() != time.UTC {
						t.Errorf("recorded %s ago", age)
					}
				}
				var payload struct{ N []any }
				if err := json.Unmarshal(all[1].Event.Payload, &payload); err != nil || len(payload.N) != 2 || payload.N[1] != `"` || !all[1].Event.OccurredAt.Equal(then) || string(all[0].Event.Payload) != "{}" {
					t.Errorf("events %+v, %v", all, err)
				}
				for _, d := range all {
					must(t, store.Fail(bounded(t), conn, d.Claim, then, "no\x00 \xff good"))
				}
				again, err := store.Claim(bounded(t), conn, "w", time.Minute, 10)
				must(t, err)
				if len(again) != 3 || again[0].LastError != "no  good" || again[0].Attempts != 2 {
					t.Errorf("again %+v", again)
				}
				must(t, store.Succeed(bounded(t), conn, again[0].Claim))
				must(t, store.Dead(bounded(t), conn, again[1].Claim, "x"))
				must(t, store.Dead(bounded(t), conn, again[2].Claim, "x"))
				h, err := store.Health(bounded(t), conn, 100)
				if must(t, err); h.Dead.N != 2 || h.Owed.N != 3 || h.Parked.N != 1 {
					t.Errorf("health %+v", h)
				}
				done, err := store.Requeue(bounded(t), conn, domainevents.Filter{Limit: 10})
				if must(t, err); len(done.Reopened) != 2 || done.Reopened[0].Target != "t" {
					t.Errorf("requeued %+v", done)
				}
				replayed, err := store.Replay(bounded(t), conn, all[0].Event.ID)
				if must(t, err); len(replayed.Reopened) != 2 {
					t.Errorf("replayed %+v", replayed)
				}
				if quiet, err := store.Quiet(bounded(t), conn, time.Now().Add(time.Hour)); err != nil || len(quiet) != 1 || quiet[0].Name != "r" {
					t.Errorf("quiet %+v, %v", quiet, err)
				}
			})
		}
	}
}

func TestWhatIsRecordedGoesWithItsTransaction(t *testing.T) {
	db := installed.New(t)
	tx, _ := begin(t, db)
	done, err := store.Record(bounded(t), tx, domainevents.Draft{Type: "x"}, to("a", "b")...)
	if err != nil || !done.New {
		t.Fatalf("%+v, %v", done, err)
	}
	claim(t, db.Conn(t), "w", 10)
	must(t, tx.Rollback(t.Context()))
	wants(t, db, "-")
	if n := db.Int(t, `select count(*) from domain_events`); n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestASuppressedEventHasNoDeliveries(t *testing.T) {
	db := installed.New(t)
	id := record(t, db.Conn(t), domainevents.Draft{Suppressed: "a test account", Retention: domainevents.UntilSettled})
	if got := db.Text(t, `select suppressed || ' ' || retention_policy from domain_events where id = $1`, id); got != "a test account SETTLED" {
		t.Errorf("it is %q", got)
	}
	wants(t, db, "-")
}

func TestASecondEventOfAKeyIsNotRecorded(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	key := domainevents.Draft{Type: "x", DedupeKey: "k", Retention: own(t)}
	first := record(t, conn, key, to("a")...)
	record(t, conn, domainevents.Draft{Type: "x"}, to("a")...) // no key is no key twice
	record(t, conn, domainevents.Draft{Type: "x"}, to("a")...)
	must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		done, err := store.Record(bounded(t), tx, key, to("b")...)
		if done.New || done.Event != first {
			t.Errorf("%+v, want the first, %d", done, first)
		}
		return err
	}))
	if n := db.Int(t, `select count(*) from domain_event_deliveries where receiver = 'b'`); n != 0 {
		t.Errorf("%d deliveries of the second", n)
	}
}

// The second of two at once waits for the first, and takes its place where that gives up.
func TestTwoEventsOfAKeyAtOnce(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			key := domainevents.Draft{Type: "x", DedupeKey: "k"}
			first, _ := begin(t, db)
			one, err := store.Record(bounded(t), first, key, to("a")...)
			must(t, err)

			conn := db.Conn(t)
			var two domainevents.Recorded
			done := db.Beside(t, conn, func() error {
				return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) (err error) {
					two, err = store.Record(bounded(t), tx, key, to("b")...)
					return err
				})
			})
			if commits {
				must(t, first.Commit(t.Context()))
			} else {
				must(t, first.Rollback(t.Context()))
			}
			must(t, <-done)
			if two.New == commits || (two.Event == one.Event) != commits {
				t.Errorf("the second: %+v, the first %+v", two, one)
			}
			if n := db.Int(t, `select count(*) from domain_events`); n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// A level that does not wait cannot see the first one, and is told to do it again.
func TestASecondEventOfAKeyUnderASnapshotIsAConflict(t *testing.T) {
	db := installed.New(t)
	key := domainevents.Draft{Type: "x", DedupeKey: "k"}
	tx, err := db.Conn(t).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	exec(t, tx, 0, `select from domain_events`) // its snapshot
	record(t, db.Conn(t), key)
	if done, err := store.Record(bounded(t), tx, key); !errors.Is(err, domainevents.ErrConflict) {
		t.Errorf("recorded %+v, %v", done, err)
	}
}

// untouched is a transaction that must not be used.
type untouched struct{ pgx.Tx }

func TestWhatCannotBeDoneDoesNotAskTheDatabase(t *testing.T) {
	for want, d := range map[error]domainevents.Draft{
		domainevents.ErrDedupe: {Type: "x", DedupeKey: "k", Retention: domainevents.UntilSucceeded},
		domainevents.ErrEvent:  {},
	} {
		if _, err := store.Record(t.Context(), untouched{}, d); !errors.Is(err, want) {
			t.Errorf("record: %v, want %v", err, want)
		}
	}
	for _, c := range []struct {
		worker string
		lease  time.Duration
		limit  int
		want   error
	}{
		{"", time.Minute, 1, domainevents.ErrClaim}, {"w", 0, 1, domainevents.ErrClaim}, {"w", -time.Minute, 1, domainevents.ErrClaim},
		{"w", time.Microsecond, 1, domainevents.ErrClaim}, {"w", time.Minute, 0, domainevents.ErrLimit}, {"w", time.Minute, -1, domainevents.ErrLimit},
		{"w", time.Minute, postgres.MaxClaim + 1, domainevents.ErrLimit},
	} {
		if _, err := store.Claim(t.Context(), untouched{}, c.worker, c.lease, c.limit); !errors.Is(err, c.want) {
			t.Errorf("claim %+v: %v", c, err)
		}
	}
	if err := store.Fail(t.Context(), untouched{}, domainevents.Claim{}, time.Time{}, ""); !errors.Is(err, domainevents.ErrClaim) {
		t.Errorf("fail: %v", err)
	}
	for _, limit := range []int{0, -1, domainevents.MaxRequeue + 1} {
		if _, err := store.Requeue(t.Context(), nil, domainevents.Filter{Limit: limit}); !errors.Is(err, domainevents.ErrLimit) {
			t.Errorf("requeue %d: %v", limit, err)
		}
	}
	for _, bound := range []int{0, -1, postgres.MaxHealth + 1} {
		if _, err := store.Health(t.Context(), untouched{}, bound); !errors.Is(err, domainevents.ErrLimit) {
			t.Errorf("health %d: %v", bound, err)
		}
	}
}

func TestAPayloadThatTheDatabaseDoesNotHoldIsRefused(t *testing.T) {
	db := installed.New(t)
	tx, _ := begin(t, db)
	_, err := store.Record(bounded(t), tx, domainevents.Draft{Type: "x", Payload: json.RawMessage(`"\u0000"`)})
	if !errors.Is(err, domainevents.ErrEvent) {
		t.Errorf("record: %v", err)
	}
}

// A word that nobody knows is read as it is, and is no error.
func TestAnUnknownPolicyWordIsNoError(t *testing.T) {
	db := installed.New(t)
	record(t, db.Conn(t), domainevents.Draft{}, to("a")...)
	db.Exec(t, `update domain_events set retention_policy = 'LATER'`)
	all := claim(t, db.Conn(t), "w", 10, "1/a")
	if r := all[0].Event.Retention; r.Policy() != "LATER" || r.Policy().Known() {
		t.Errorf("retention %s", r)
	}
}
