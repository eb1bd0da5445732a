package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/prunectl/prunectl/policy"
)

func in(table string) policy.Name { return policy.Name{Schema: "public", Table: table} }

// rightPurge is a purge without a problem.
func rightPurge() policy.Purge {
	return policy.Purge{Name: "tenant", Key: "tenant_id", Tables: []policy.PurgeTable{
		{Table: in("messages"), Column: "org"},
		{Table: in("jobs"), Children: []policy.Child{{Table: logs, Key: byID}}},
	}, Exclude: []policy.Exclusion{{Table: in("audit_log"), Reason: "kept for ten years by law"}}}
}

func TestNoProblemsOfPurges(t *testing.T) {
	for name, change := range map[string]func(*policy.Purge){
		"as it is":            func(*policy.Purge) {},
		"a column of each":    func(p *policy.Purge) { p.Key, p.Tables[1].Column = "", "tenant" },
		"nothing is excluded": func(p *policy.Purge) { p.Exclude = nil },
		"a table by two columns": func(p *policy.Purge) {
			p.Tables = append(p.Tables, policy.PurgeTable{Table: in("messages"), Column: "receiver"}, policy.PurgeTable{Table: in("messages")})
		},
		"one name in two schemas": func(p *policy.Purge) {
			p.Tables = append(p.Tables, policy.PurgeTable{Table: policy.Name{Schema: "other", Table: "jobs"}})
		},
		"children of children": func(p *policy.Purge) {
			p.Tables[1].Children[0].Children = []policy.Child{{Table: tags, Key: byID}}
			p.Tables[0].Children = []policy.Child{{Table: tags, Key: byID}}
		},
		"a child by two keys": func(p *policy.Purge) {
			p.Tables[1].Children = append(p.Tables[1].Children, policy.Child{Table: logs, Key: []policy.ChildKey{{Parent: "id", Child: "other_id"}}})
		},
		"the largest batch": func(p *policy.Purge) { p.Batch = policy.Batch{Limit: policy.MaxLimit, Target: time.Millisecond} },
		"a pause and times": func(p *policy.Purge) {
			p.Pause, p.Timeouts = time.Second, policy.Timeouts{Statement: time.Second, Lock: time.Second}
		},
		"a setting": func(p *policy.Purge) { p.Set = []policy.Setting{{Name: "app.purging", Value: "on"}} },
	} {
		p := rightPurge()
		change(&p)
		if ps := p.Problems(); len(ps) > 0 {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func TestProblemsOfPurges(t *testing.T) {
	const name = " is no name of a purge; write a lower-case letter, then letters, digits and _, 48 at most"
	tables := func(ts ...policy.PurgeTable) func(*policy.Purge) { return func(p *policy.Purge) { p.Tables = ts } }
	children := func(cs ...policy.Child) func(*policy.Purge) {
		return func(p *policy.Purge) { p.Tables[1].Children = cs }
	}
	exclude := func(es ...policy.Exclusion) func(*policy.Purge) { return func(p *policy.Purge) { p.Exclude = es } }
	for _, c := range []struct {
		name   string
		change func(*policy.Purge)
		want   []string
	}{
		{"no name", func(p *policy.Purge) { p.Name = "" }, []string{`""` + name}},
		{"a name in capitals", func(p *policy.Purge) { p.Name = "Tenant" }, []string{`"Tenant"` + name}},

		{"no tables", tables(), []string{"tables: there is no table; list the tables that hold the rows of a tenant"}},
		{"a table of no name", tables(policy.PurgeTable{Column: "org"}), []string{"tables.0.table: no table is named"}},
		{"a table without a schema", tables(policy.PurgeTable{Table: policy.Name{Table: "jobs"}}), []string{`tables.0.table: "jobs" has no schema; write schema.table`}},
		{"no key", func(p *policy.Purge) { p.Key = "" }, []string{
			"key: no column says whose the rows of public.jobs are; name it here for all tables, or as the column of each"}},
		{"no key, and a table of no name", func(p *policy.Purge) { p.Key, p.Tables[1].Table = "", policy.Name{} }, []string{"tables.1.table: no table is named"}},
		{"no key of three tables", func(p *policy.Purge) {
			p.Key, p.Tables = "", []policy.PurgeTable{{Table: in("a")}, {Table: in("b")}, {Table: in("c"), Column: "org"}, {Table: in("a")}}
		}, []string{"key: no column says whose the rows of public.a, public.b are; name it here for all tables, or as the column of each"}},
		{"a table twice", tables(policy.PurgeTable{Table: in("jobs")}, policy.PurgeTable{Table: in("a")}, policy.PurgeTable{Table: in("jobs")}), []string{
			"tables.2: public.jobs stands twice with column tenant_id; keep one of them"}},
		{"a table twice, once by the key's name", tables(policy.PurgeTable{Table: in("jobs")}, policy.PurgeTable{Table: in("jobs"), Column: "tenant_id"}), []string{
			"tables.1: public.jobs stands twice with column tenant_id; keep one of them"}},

		{"a child of nothing", children(policy.Child{}), []string{
			"tables.1.children.0.key: no key leads to the table; map the columns that it refers to, to its own", "tables.1.children.0.table: no table is named"}},
		{"a child of nothing beside a table of no name", func(p *policy.Purge) {
			p.Tables[0].Table, p.Tables[1].Children = policy.Name{}, []policy.Child{{Key: byID}}
		}, []string{"tables.0.table: no table is named", "tables.1.children.0.table: no table is named"}},
		{"a child without a schema", children(policy.Child{Table: policy.Name{Table: "job_logs"}, Key: byID}), []string{
			`tables.1.children.0.table: "job_logs" has no schema; write schema.table`}},
		{"a child by a column twice", children(policy.Child{Table: logs, Key: []policy.ChildKey{{Parent: "a", Child: "x"}, {Parent: "b", Child: "x"}}}), []string{
			"tables.1.children.0.key: a column stands twice in the key"}},
		{"a child twice", children(policy.Child{Table: logs, Key: byID}, policy.Child{Table: logs, Key: byID}), []string{
			"tables.1.children.1: public.job_logs stands twice with this key; keep one of them"}},
		{"a child that is a table", children(policy.Child{Table: in("messages"), Key: byID}), []string{
			"tables.1.children.0.table: public.messages is in tables already; keep one of them: a row goes by a column of its own, or else by the row that it refers to"}},
		{"a child's child that is its own table", children(policy.Child{Table: logs, Key: byID, Children: []policy.Child{{Table: in("jobs"), Key: byID}}}), []string{
			"tables.1.children.0.children.0.table: public.jobs is in tables already; keep one of them: a row goes by a column of its own, or else by the row that it refers to"}},

		{"nothing is excluded", exclude(policy.Exclusion{Reason: "by law"}), []string{"exclude: no table is named"}},
		{"excluded without a schema", exclude(policy.Exclusion{Table: policy.Name{Table: "audit"}, Reason: "by law"}), []string{`exclude.audit: "audit" has no schema; write schema.table`}},
		{"excluded for no reason", exclude(policy.Exclusion{Table: in("audit")}, policy.Exclusion{Table: in("books"), Reason: " \n"}), []string{
			"exclude.public.audit: no reason is given; write why its rows stay; the receipt repeats it",
			"exclude.public.books: no reason is given; write why its rows stay; the receipt repeats it"}},
		{"excluded twice", exclude(policy.Exclusion{Table: in("audit"), Reason: "by law"}, policy.Exclusion{Table: in("audit"), Reason: "by law"}), []string{
			"exclude.public.audit: public.audit stands twice; keep one of them"}},
		{"excluded and a table", exclude(policy.Exclusion{Table: in("jobs"), Reason: "by law"}), []string{
			"exclude.public.jobs: public.jobs is in tables already; keep one of them: its rows go, or they stay"}},
		{"excluded and a child", exclude(policy.Exclusion{Table: logs, Reason: "by law"}), []string{
			"exclude.public.job_logs: public.job_logs is in children already; keep one of them: its rows go, or they stay"}},

		{"limit", func(p *policy.Purge) { p.Batch.Limit = policy.MaxLimit + 1 }, []string{"batch.limit: 100001 is out of range; it is from 1 to 100000"}},
		{"negative bounds", func(p *policy.Purge) {
			p.Batch, p.Timeouts, p.Pause = policy.Batch{Limit: -1, Target: -1}, policy.Timeouts{Statement: -1, Lock: -1}, -1
		}, []string{"batch.limit: -1 is out of range; it is from 1 to 100000", "batch.target: it must be above zero", "pause: it must not be negative",
			"timeouts.lock: it must be above zero", "timeouts.statement: it must be above zero"}},
		{"settings", func(p *policy.Purge) {
			p.Set = []policy.Setting{{Name: "a b"}, {Name: "synchronous_commit"}, {Name: "row_security", Value: "on"}}
		}, []string{`set.a b: "a b" is no name of a parameter`, "set.row_security: a purge has to see every row, so row_security is set by prunectl in each batch; leave it out",
			"set.synchronous_commit: synchronous_commit is set by prunectl in each batch; leave it out"}},
		{"everything at once", func(p *policy.Purge) { *p = policy.Purge{Exclude: []policy.Exclusion{{}}, Pause: -1} }, []string{
			`""` + name, "exclude: no table is named", "pause: it must not be negative", "tables: there is no table; list the tables that hold the rows of a tenant"}},
	} {
		p := rightPurge()
		c.change(&p)
		var got []string
		for _, pr := range p.Problems() {
			got = append(got, pr.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// TestPurgeWithDefaults: what is silent is filled in, what is written stays, and the purge that was asked is not changed.
func TestPurgeWithDefaults(t *testing.T) {
	p := rightPurge()
	p.Batch.Limit = 7
	got := p.WithDefaults()
	if got.Batch != (policy.Batch{Limit: 7, Target: policy.DefaultTarget}) || got.Pause != 0 ||
		got.Timeouts != (policy.Timeouts{Statement: policy.DefaultStatementTimeout, Lock: policy.DefaultLockTimeout}) {
		t.Errorf("%+v", got)
	}
	if got.Tables[0].Column != "org" || got.Tables[1].Column != "tenant_id" || p.Tables[1].Column != "" {
		t.Errorf("%+v of %+v", got.Tables, p.Tables)
	}
}
