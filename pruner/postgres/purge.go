package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// Purge removes the rows of one tenant from the tables of a purge. It implements [tenant.Remover]. Nothing that sweeps can
// be given one: its steps are no [pruner.Pruner], and no Arm leads to it.
type Purge struct {
	db    *DB
	purge policy.Purge
	steps []*removal
}

var (
	_ tenant.Remover = (*Purge)(nil)
	_ tenant.Step    = (*removal)(nil)
)

// Steps are the tables in their order, the children of a table before it; see [tenant.Remover].
func (p *Purge) Steps() []tenant.Step {
	steps := make([]tenant.Step, len(p.steps))
	for i, s := range p.steps {
		steps[i] = s
	}
	return steps
}

// walk is how the tenant's rows of a table are gone through.
type walk int

const (
	byPages walk = iota // page after page of the whole table: no index leads with the column
	byIndex             // by an index that has them in no order
	byKey               // by an index that has them in the order of a unique key
)

// removal is a step of a purge: the rows of one tenant in one table.
type removal struct {
	db     *DB
	purge  *policy.Purge
	tenant string
	gate   int64
	spec   tenant.Spec

	chain    []tier // from the table that says whose its rows are down to the table of the step
	whom     column // the column of the first that says it
	walk     walk   // through the first
	keys     []column
	index    string      // that serves the walk, "" for pages
	refs     []reference // the foreign keys that point at the table of the step
	triggers []trigger   // that fire on delete

	look int                                // of a child: rows of the first table that a batch looks at
	edit func(name string, _ string) string // for tests that take a clause out
}

// tier is a table of a chain.
type tier struct {
	table  *table
	key    []policy.ChildKey // by which its rows refer to the table before
	keyset []column          // the order of the rows that refer to one row, as with child
}

// reference is a foreign key that points at a table.
type reference struct {
	name        string
	table       policy.Name
	oid         uint32
	pairs       []policy.ChildKey
	onDelete    string // pg_constraint.confdeltype
	partitioned bool
	self        bool
	indexed     bool
	canUse      bool // USAGE on its schema
	canSelect   bool // SELECT on its columns
	rlsActive   bool
	collations  bool // the two sides have different ones
	rows        float64
	bytes       int64
}

func (s *removal) table() *table  { return s.chain[len(s.chain)-1].table }
func (s *removal) top() *table    { return s.chain[0].table }
func (s *removal) child() bool    { return len(s.chain) > 1 }
func (s *removal) column() column { return s.whom }

// Spec says what the step removes from.
func (s *removal) Spec() tenant.Spec { return s.spec }

// Remove is one batch; see [tenant.Step].
func (s *removal) Remove(ctx context.Context, b tenant.Batch) (pruner.Result, error) {
	if b.Limit < 1 || b.Limit > pruner.MaxLimit {
		return pruner.Result{}, fmt.Errorf("limit %d: %w", b.Limit, pruner.ErrLimit)
	}
	at, err := parseSpot(b.After)
	if err != nil {
		return pruner.Result{}, err
	}
	if strings.Count(at.Passed, "(") > maxPassed*max(b.Limit, s.purge.Batch.Limit) {
		return s.unordered(at), nil
	}
	var res pruner.Result
	err = s.db.with(ctx, func(conn *pgx.Conn) (err error) {
		res, err = s.batch(ctx, conn, b, at)
		return err
	})
	if err != nil && res.Removed == 0 {
		res = pruner.Result{}
	}
	return res, err
}

// batch sends one transaction and says where the next one goes on.
func (s *removal) batch(ctx context.Context, conn *pgx.Conn, b tenant.Batch, at spot) (pruner.Result, error) {
	f := form{mode: b.Mode, next: len(at.Key) > 0, one: len(at.One) > 0, last: len(at.Last) > 0}
	timeout := s.purge.Timeouts.Statement
	if b.Timeout > 0 && b.Timeout < timeout {
		timeout = b.Timeout
	}
	look := s.looks(b.Limit)
	args := s.values(b.Limit, look, at)
	args[argStatementTimeout], args[argLockTimeout] = millis(timeout), millis(min(s.purge.Timeouts.Lock, timeout))
	calls := []call{s.statement("settings", s.settingsSQL()).with(args), s.statement("pick", s.pickSQL(f)).with(args)}
	if f.locks() {
		calls = append(calls, s.statement("delete", s.deleteSQL()).with(args), s.statement("after", s.afterSQL(f)).with(args))
	}
	var row purgeRow
	to := sending{on: s.table().name, timeout: timeout, locks: s.lockProbes()}
	res, err := to.send(ctx, conn, calls, func(answers []answer) (r pruner.Result, xid string, bad error) {
		r, row, xid, bad = s.count(answers, f)
		return r, xid, bad
	})
	if err != nil || res.Busy {
		return res, err
	}
	s.goOn(&res, row, at, b.Limit, look)
	return res, nil
}

func (s *removal) statement(name string, st statement) statement {
	if s.edit != nil {
		st.sql = s.edit(name, st.sql)
	}
	return st
}

// values are those of the parameters that the place of a batch decides.
func (s *removal) values(limit, look int, at spot) map[string]string {
	args := map[string]string{
		argTenant: s.tenant, argGate: strconv.FormatInt(s.gate, 10), argLimit: strconv.Itoa(limit), argLook: strconv.Itoa(look), argPassed: join(at.Passed, ""),
		argFrom: at.from(), argUntil: at.until(limit), argWhose: "(0,0)",
	}
	for i, k := range at.Key {
		args[argKey+strconv.Itoa(i)] = k
	}
	for i, k := range at.Edge {
		args[argEdge+strconv.Itoa(i)] = k
	}
	for i, k := range at.One {
		args[argWhose+strconv.Itoa(i)] = k
		args[argWhose] = k
	}
	for i, k := range at.Last {
		args[argLast+strconv.Itoa(i)] = k
	}
	return args
}

// lockProbes are the tables that a batch locks.
func (s *removal) lockProbes() []lockProbe {
	probes := []lockProbe{deleteProbe(s.table().name)}
	for _, l := range s.chain[:len(s.chain)-1] {
		probes = append(probes, lockProbe{l.table.name.String(), "SELECT FROM ONLY " + tableName(l.table.name) + " WHERE false FOR SHARE"})
	}
	return probes
}

// purgeRow is what the steps of a batch answered.
type purgeRow struct {
	last   *string // place of the last row, see [removal.places]
	wide   *string
	passed string
	edge   *string // by key: the last key of the tenant
	most   int64   // pages, or bytes of a table, that a pass goes through at most
	rest   int
	page   int
}

// count reads the answers of the steps.
func (s *removal) count(answers []answer, f form) (res pruner.Result, row purgeRow, xid string, err error) {
	shapeless := fmt.Errorf("batch on %s: the server's answer has another shape than the statements", s.table().name)
	want, fields := map[bool]int{true: 4, false: 2}[f.locks()], map[bool]int{true: 9, false: 6}[s.child()]
	if len(answers) != want || len(answers[1]) != fields {
		return res, row, "", shapeless
	}
	p := parser{}
	first := answers[1]
	if first[2].text != "t" {
		return pruner.Result{Busy: true}, row, "", nil
	}
	res.Examined = p.int(first[0])
	picked := p.int(first[1])
	row.last = first[4].pointer()
	switch {
	case first[5].null:
	case s.walk == byKey && !f.one:
		row.edge = first[5].pointer()
	default:
		row.most = p.int64(first[5])
	}
	if s.child() {
		row.wide, row.rest, row.page = first[6].pointer(), p.int(first[7]), p.int(first[8])
	}
	switch {
	case f.mode == pruner.StepStuck:
		res.Stuck = picked
	case !f.locks():
		res.Locked = picked
	default:
		res.Locked = res.Examined - picked
	}
	if !f.locks() {
		if row.last != nil {
			row.passed = *row.last
		}
		return res, row, "", p.err
	}
	if len(answers[2]) != 1 || len(answers[3]) != 4 {
		return res, row, "", shapeless
	}
	res.Removed = p.int(answers[2][0])
	left := p.int(answers[3][0])
	xid, row.passed = answers[3][1].text, answers[3][2].text
	var kept []int
	if e := json.Unmarshal([]byte(answers[3][3].text), &kept); e != nil || len(kept) != len(s.refs) {
		return res, row, "", shapeless
	}
	res.Stuck = left
	res.Moved = max(0, picked-res.Removed-left)
	res.Blocked = s.blocks(left, kept)
	return res, row, xid, p.err
}

// blocks names what keeps the rows that are left: the keys by which others refer to them, and else a trigger.
func (s *removal) blocks(left int, kept []int) (bs []pruner.Block) {
	for i, n := range kept {
		if n > 0 {
			bs = append(bs, pruner.Block{Constraint: s.refs[i].name, Table: s.refs[i].table.String(), Rows: n})
			left -= n
		}
	}
	if left > 0 {
		bs = append(bs, pruner.Block{Constraint: vetoersOf(s.triggers), Table: s.table().name.String(), Rows: left})
	}
	return bs
}

func (f field) pointer() *string {
	if f.null {
		return nil
	}
	return &f.text
}

// unordered gives up a walk that no index orders after maxPassed limits of rows that stay.
func (s *removal) unordered(at spot) pruner.Result {
	what := "rows of the tenant"
	if len(at.One) > 0 {
		what = "rows of one row"
	}
	res := pruner.Result{Examined: 1, Stuck: 1, Blocked: []pruner.Block{{
		Constraint: fmt.Sprintf("%s that no index orders, and that stay", what), Table: s.table().name.String(), Rows: 1,
	}}}
	if len(at.One) > 0 {
		res.Next = at.past().cursor()
	} else {
		res.End = true
	}
	return res
}

// gateOf is what keeps two purges of one tenant apart.
func gateOf(name, tenant string) int64 {
	h := fnv.New64a()
	for _, s := range []string{"prunectl purge", name, tenant} {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return int64(h.Sum64())
}
