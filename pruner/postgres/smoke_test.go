package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	db := pgtest.New(t)
	db.Exec(t, `create table runs (tenant text not null, id bigint not null, status text not null, primary key (tenant, id));
create table run_events (tenant text not null, run_id bigint not null, seq int not null, created_at timestamptz not null, body jsonb, primary key (tenant, run_id, seq));
create index run_events_age on run_events (created_at, tenant, run_id);
insert into runs values ('t1', 1, 'waiting_approval'), ('t1', 2, 'completed');
insert into run_events select 't1', 1, g, now() - interval '190 days' + g * interval '1 minute', null from generate_series(1,150) g;
insert into run_events select 't1', 2, g, now() - interval '80 days' + g * interval '1 minute', null from generate_series(1,40) g;
insert into run_events select 't1', 9, g, now() - interval '80 days' + g * interval '1 minute', null from generate_series(1,5) g;`)
	s := policy.Sweep{Name: "ev", Table: policy.Name{Schema: "public", Table: "run_events"}, Age: "created_at", Window: policy.MustWindow(30 * 24 * time.Hour),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "tenant", Owner: "tenant"}, {Target: "run_id", Owner: "id"}},
			Column: "status", Terminal: policy.Texts("completed", "failed", "cancelled")}}}
	d := Pool(db.Pool(t))
	i, err := Inspect(ctx, d, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range i.Checks {
		t.Log(c)
	}
	arms, err := i.Arms(d, Options{OneSweeper: true})
	if err != nil {
		t.Fatal(err)
	}
	a := arms[0]
	c := s.Window.Cutoff(time.Now())
	for _, st := range a.Statements() {
		t.Log(st.Name + "\n" + st.SQL)
	}
	t.Log(a.Plan(ctx, c, 100000))
	t.Log(a.HeldBy(ctx, c, 100000))
	t.Log(a.Undated(ctx, 100000))
	e, err := a.Explain(ctx, c, 50)
	t.Log(e, err)
	for _, mode := range []pruner.Mode{pruner.StepStuck, pruner.SkipLocked, pruner.Remove} {
		var cur pruner.Cursor
		for {
			r, err := a.Prune(ctx, pruner.Batch{Cutoff: c, Limit: 50, After: cur, Mode: mode})
			t.Logf("%s %+v %v", mode, r, err)
			if err != nil || r.End {
				break
			}
			cur = r.Next
		}
	}
}
