package postgres_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/inboxoutbox"
	"github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/internal/pgtest"
)

// lapseClaims lets all claims end.
func lapseClaims(t *testing.T, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, `update inbox_outbox.outbox set claimed_until = now() - interval '1 second', available_at = now() - interval '1 second' where claim_token is not null`)
}

func TestARecordIsAsItWasAdded(t *testing.T) {
	db := installed.New(t)
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	d := inboxoutbox.Draft{EventID: "e", Topic: "t", Key: "k", Headers: map[string]string{"a": `"b"`, "": "c"}, Body: json.RawMessage(`{"n": 1}`), AvailableAt: later}
	tx := begin(t, db)
	a, err := store.Add(bounded(t), tx, d)
	must(t, err)
	if !a.New {
		t.Errorf("added %+v", a)
	}
	wants(t, db, "") // until it commits
	must(t, tx.Commit(bounded(t)))
	conn := db.Conn(t)
	claim(t, conn, 10)
	db.Exec(t, `update inbox_outbox.outbox set available_at = now() - interval '1 hour'`)
	r := claim(t, conn, 10, "e")[0]
	if r.ID != a.Record || r.Topic != "t" || r.Key != "k" || !maps.Equal(r.Headers, d.Headers) || string(r.Body) != `{"n": 1}` || r.Attempts != 1 ||
		r.Claim.Record != r.ID || r.Claim.Token == "" || r.CreatedAt.Location() != time.UTC || time.Until(r.Claim.Until) < 30*time.Second {
		t.Errorf("record %+v", r)
	}
	if n := db.Int(t, `select count(*) from inbox_outbox.outbox where key = 'k'`); n != 1 {
		t.Error("the key is not in its column")
	}
	add(t, db, "plain")
	if r := claim(t, conn, 10, "plain")[0]; r.Key != "" || len(r.Headers) != 0 {
		t.Errorf("record %+v", r)
	}
}

// Somebody else's headers do not keep a record from being claimed.
func TestHeadersThatAreNoTextsAreKeptAsTheyAreWritten(t *testing.T) {
	db := installed.New(t)
	db.Exec(t, `insert into inbox_outbox.outbox (event_id, topic, body, headers) values ('e', 't', 'null', '{"a": 1, "b": {"c": null}, "d": "x"}')`)
	r := claim(t, db.Conn(t), 1, "e")[0]
	if want := map[string]string{"a": "1", "b": `{"c": null}`, "d": "x"}; !maps.Equal(r.Headers, want) || string(r.Body) != "null" {
		t.Errorf("record %+v", r)
	}
}

func TestAnEventIsAddedOnce(t *testing.T) {
	db := installed.New(t)
	id := add(t, db, "e")
	must(t, inTx(t, db, func(tx pgx.Tx) error {
		a, err := store.Add(bounded(t), tx, inboxoutbox.Draft{EventID: "e", Topic: "another", Body: []byte(`{}`)})
		if a.New || a.Record != id {
			t.Errorf("added %+v, the first is %d", a, id)
		}
		return err
	}))
	if n := db.Int(t, `select count(*) from inbox_outbox.outbox where topic = 't'`); n != 1 {
		t.Errorf("%d records", n)
	}
}

// Two add the same event at once: the second waits for the first one, and says what became of it.
func TestTheSecondAddWaitsForTheFirst(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			d := inboxoutbox.Draft{EventID: "e", Topic: "t", Body: []byte(`{}`)}
			one, conn := begin(t, db), db.Conn(t)
			first, err := store.Add(bounded(t), one, d)
			must(t, err)
			two, err := conn.Begin(bounded(t))
			must(t, err)
			var second inboxoutbox.Added
			done := db.Beside(t, conn, func() (err error) { second, err = store.Add(bounded(t), two, d); return err })
			if commits {
				must(t, one.Commit(bounded(t)))
			} else {
				must(t, one.Rollback(bounded(t)))
			}
			must(t, <-done)
			must(t, two.Commit(bounded(t)))
			if second.New == commits || (second.Record == first.Record) != commits {
				t.Errorf("the second added %+v, the first %+v", second, first)
			}
			wants(t, db, "out:e:waits")
		})
	}
}

func TestARecordThatCannotBeIsRefused(t *testing.T) {
	db := installed.New(t)
	for name, d := range map[string]inboxoutbox.Draft{
		"no id": {Topic: "t", Body: []byte(`{}`)}, "no JSON": {EventID: "e", Topic: "t", Body: []byte(`{`)},
		"a zero byte in the body": {EventID: "e", Topic: "t", Body: []byte(`"\u0000"`)}, "in the topic": {EventID: "e", Topic: "t\x00", Body: []byte(`{}`)},
	} {
		err := inTx(t, db, func(tx pgx.Tx) error { _, err := store.Add(bounded(t), tx, d); return err })
		if !errors.Is(err, inboxoutbox.ErrEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	conn := db.Conn(t)
	for _, limit := range []int{0, -1, postgres.MaxClaim + 1} {
		if _, err := store.Claim(bounded(t), conn, time.Minute, limit); !errors.Is(err, inboxoutbox.ErrLimit) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for _, hold := range []time.Duration{0, -time.Minute, time.Microsecond} {
		if _, err := store.Claim(bounded(t), conn, hold, 1); !errors.Is(err, inboxoutbox.ErrClaim) {
			t.Errorf("hold %s: %v", hold, err)
		}
	}
}

func TestTheLongestAvailableIsClaimedFirst(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for _, e := range []string{"later", "young", "old", "lapsed", "claimed", "delivered", "twin b", "twin a"} {
		add(t, db, e)
	}
	db.Exec(t, `
update inbox_outbox.outbox set available_at = now() + interval '1 hour' where event_id = 'later';
update inbox_outbox.outbox set available_at = now() - interval '1 minute' where event_id like 'twin%';
update inbox_outbox.outbox set available_at = now() - interval '3 minutes' where event_id = 'old';
update inbox_outbox.outbox set claim_token = gen_random_uuid(), claimed_until = now() - interval '2 minutes', available_at = now() - interval '2 minutes' where event_id = 'lapsed';
update inbox_outbox.outbox set claim_token = gen_random_uuid(), claimed_until = now() + interval '1 hour', available_at = now() + interval '1 hour' where event_id = 'claimed';
update inbox_outbox.outbox set delivered_at = now(), available_at = now() - interval '1 hour' where event_id = 'delivered'`)
	claim(t, conn, 1, "old")
	claim(t, conn, 2, "lapsed", "twin b") // of one time the one that was added first
	claim(t, conn, 10, "twin a", "young")
	claim(t, conn, 10)
	lapseClaims(t, db)
	if again := claim(t, conn, 1, "young"); again[0].Attempts != 2 {
		t.Errorf("attempts %d", again[0].Attempts)
	}
}

// What one worker is claiming is passed over by the next, and not waited for.
func TestTwoWorkersClaimDifferentRecords(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	for _, e := range []string{"1", "2", "3", "4"} {
		add(t, db, e)
	}
	tx := begin(t, db)
	claim(t, tx, 2, "1", "2")
	claim(t, conn, 10, "3", "4")
	must(t, tx.Rollback(bounded(t)))
	claim(t, conn, 10, "1", "2")
}

func TestEachAcknowledgementEndsTheClaim(t *testing.T) {
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for want, acknowledge := range map[string]func(db postgres.DB, c inboxoutbox.Claim) error{
		"delivered": func(db postgres.DB, c inboxoutbox.Claim) error { return store.Deliver(t.Context(), db, c) },
		"later":     func(db postgres.DB, c inboxoutbox.Claim) error { return store.Retry(t.Context(), db, c, soon) },
		"at once":   func(db postgres.DB, c inboxoutbox.Claim) error { return store.Retry(t.Context(), db, c, time.Time{}) },
	} {
		t.Run(want, func(t *testing.T) {
			db := installed.New(t)
			conn := db.Conn(t)
			add(t, db, "e")
			add(t, db, "f")
			all := claim(t, conn, 2, "e", "f")
			for _, wrong := range []inboxoutbox.Claim{{Record: all[0].ID}, {Record: all[0].ID, Token: all[1].Claim.Token}, {Record: 99, Token: all[0].Claim.Token}} {
				if err := acknowledge(conn, wrong); !errors.Is(err, inboxoutbox.ErrClaimLost) {
					t.Errorf("%+v: %v", wrong, err)
				}
			}
			must(t, acknowledge(conn, all[0].Claim))
			if err := acknowledge(conn, all[0].Claim); !errors.Is(err, inboxoutbox.ErrClaimLost) {
				t.Errorf("twice: %v", err)
			}
			switch want {
			case "delivered":
				wants(t, db, "out:e:delivered out:f:claimed")
				if n := db.Int(t, `select count(*) from inbox_outbox.outbox where delivered_at > now() - interval '1 minute'`); n != 1 {
					t.Error("it has no end")
				}
				lapseClaims(t, db)
				claim(t, conn, 10, "f")
			case "later":
				wants(t, db, "out:e:waits out:f:claimed")
				claim(t, conn, 10)
				if n := db.Int(t, `select count(*) from inbox_outbox.outbox where available_at = $1`, soon); n != 1 {
					t.Error("it is due at another time")
				}
			case "at once":
				claim(t, conn, 10, "e")
			}
		})
	}
}

// A claim that has lapsed is the worker's until somebody takes the record, and never again after.
func TestALapsedClaimCannotOverwriteItsNewOwner(t *testing.T) {
	db := installed.New(t)
	conn := db.Conn(t)
	add(t, db, "e")
	add(t, db, "kept")
	old := claim(t, conn, 2, "e", "kept")
	lapseClaims(t, db)
	must(t, store.Deliver(bounded(t), conn, old[1].Claim)) // nobody took it

	taken := claim(t, conn, 2, "e")
	late := func() {
		t.Helper()
		if err := store.Deliver(bounded(t), conn, old[0].Claim); !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("late: %v", err)
		}
		if err := store.Retry(bounded(t), conn, old[0].Claim, time.Time{}); !errors.Is(err, inboxoutbox.ErrClaimLost) {
			t.Errorf("late retry: %v", err)
		}
	}
	late()
	wants(t, db, "out:e:claimed out:kept:delivered")
	must(t, store.Deliver(bounded(t), conn, taken[0].Claim))
	late()
	wants(t, db, "out:e:delivered out:kept:delivered")
}

// The new claim is taken but not committed when the late acknowledgement comes: it waits, and is
// refused, or holds where the new one gave up.
func TestALateAcknowledgementBesideANewClaim(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "rolls back": false} {
		t.Run(name, func(t *testing.T) {
			db := installed.New(t)
			add(t, db, "e")
			late := claim(t, db.Conn(t), 1, "e")[0].Claim
			lapseClaims(t, db)
			tx, conn := begin(t, db), db.Conn(t)
			claim(t, tx, 1, "e")
			done := db.Beside(t, conn, func() error { return store.Deliver(bounded(t), conn, late) })
			if commits {
				must(t, tx.Commit(bounded(t)))
				if err := <-done; !errors.Is(err, inboxoutbox.ErrClaimLost) {
					t.Errorf("late: %v", err)
				}
				wants(t, db, "out:e:claimed")
			} else {
				must(t, tx.Rollback(bounded(t)))
				must(t, <-done)
				wants(t, db, "out:e:delivered")
			}
		})
	}
}

// The acknowledgement came first: a claim passes over it and finds nothing after.
func TestAClaimBesideALateAcknowledgement(t *testing.T) {
	db := installed.New(t)
	add(t, db, "e")
	late := claim(t, db.Conn(t), 1, "e")[0].Claim
	lapseClaims(t, db)
	tx := begin(t, db)
	must(t, store.Deliver(bounded(t), tx, late))
	claim(t, db.Conn(t), 1)
	must(t, tx.Commit(bounded(t)))
	claim(t, db.Conn(t), 1)
	wants(t, db, "out:e:delivered")
}

// A worker delivers between another one's look and its lock: what it looked at is asked again.
func TestAClaimAsksAgainUnderItsLock(t *testing.T) {
	db := installed.New(t)
	add(t, db, "e")
	first := claim(t, db.Conn(t), 1, "e")[0].Claim
	lapseClaims(t, db)
	// The second one's snapshot is from before the delivery: it is held up within its statement by a
	// lock on the table, which the delivery has not.
	holder, conn := begin(t, db), db.Conn(t)
	must(t, store.Deliver(bounded(t), holder, first))
	_, err := holder.Exec(bounded(t), `lock table inbox_outbox.outbox in access exclusive mode`)
	must(t, err)
	var all []inboxoutbox.Record
	done := db.Beside(t, conn, func() (err error) { all, err = store.Claim(bounded(t), conn, time.Minute, 1); return err })
	must(t, holder.Commit(bounded(t)))
	must(t, <-done)
	if len(all) != 0 {
		t.Errorf("claimed %+v", all)
	}
	wants(t, db, "out:e:delivered")
}
