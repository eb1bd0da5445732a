package faults

import (
	"fmt"
	"strings"

	"github.com/prunectl/prunectl/internal/report"
)

// ledger has the server itself write down, for each delete from these tables, how many rows went in which transaction.
func ledger(tables ...string) step {
	text := `create table ledger (tx bigint not null, removed int not null);
create function enter() returns trigger language plpgsql security definer as $$ begin insert into ledger select txid_current(), count(*) from gone having count(*) > 0; return null; end $$;
`
	for _, t := range tables {
		text += fmt.Sprintf("create trigger entered after delete on %s referencing old table as gone for each statement execute function enter();\n", t)
	}
	return sql(text)
}

// inBatches holds the report against the ledger: as many rows as it says, in as many transactions as it says batches, and
// none of these with more rows than the limit, children too. The next run has a new ledger.
func inBatches(limit int) func(*scene, report.Report) {
	return func(s *scene, r report.Report) {
		s.t.Helper()
		batches := 0
		for _, sw := range r.Sweeps {
			batches += sw.Batches
		}
		is := s.db.Text(s.t, "select coalesce(sum(removed), 0) || ' rows in ' || count(distinct tx) || ' transactions' from ledger")
		if want := fmt.Sprintf("%d rows in %d transactions", r.Totals.Removed+r.Totals.Children, batches); is != want {
			s.t.Errorf("the server saw %s, the report says %s", is, want)
		}
		largest := s.db.Int(s.t, "select coalesce(max(n), 0) from (select sum(removed) as n from ledger group by tx) x")
		if largest > int64(limit) {
			s.t.Errorf("a transaction removed %d rows; the limit is %d", largest, limit)
		}
		s.db.Exec(s.t, "truncate ledger")
	}
}

// fixes runs the statements that the report gives against what is wrong. Some are advice in words.
func fixes(s *scene, r report.Report) {
	s.t.Helper()
	ran := 0
	for _, sw := range r.Sweeps {
		for _, c := range sw.Checks {
			if c.Result != report.Refuse || c.Fix == nil || !strings.HasSuffix(*c.Fix, ";") {
				continue
			}
			for statement := range strings.SplitAfterSeq(*c.Fix, "; ") {
				s.db.Exec(s.t, statement)
				ran++
			}
		}
	}
	if ran == 0 {
		s.t.Error("the report has no statement against what is wrong")
	}
}
