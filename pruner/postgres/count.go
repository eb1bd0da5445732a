package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/prunectl/prunectl/pruner"
)

// count reads the answers of settings, batch and after.
func (a *Arm) count(answers []answer, s shape) (pruner.Result, batchRow, string, error) {
	if len(answers) != 3 || len(answers[0]) < 4 || len(answers[1]) < 14 || len(answers[2]) < 3 {
		return pruner.Result{}, batchRow{}, "", fmt.Errorf("batch on %s: the server's answer has another shape than the statement", a.table.name)
	}
	p := parser{}
	before := p.int(answers[0][3])
	row := p.row(answers[1])
	after, stayed := p.int(answers[2][0]), p.int(answers[2][2])
	xid := answers[2][1].text
	if p.err != nil {
		return pruner.Result{}, batchRow{}, "", fmt.Errorf("batch on %s: %w", a.table.name, p.err)
	}
	if !row.ok {
		return pruner.Result{Busy: true}, row, xid, nil
	}
	res := pruner.Result{Examined: row.examined, Outside: row.outside, Held: row.held, Locked: row.locked, Orphan: row.orphan, Unusable: row.unusable, Raised: row.raised}
	switch s.mode {
	case pruner.StepStuck:
		res.Stuck = row.picked
		return res, row, xid, nil
	case pruner.StepLocked:
		res.Locked += row.picked
		return res, row, xid, nil
	}
	res.Removed = row.removed
	if row.removed < 0 {
		res.Removed = after - before
	}
	res.Locked += row.picked - row.mine
	res.Stuck = stayed
	res.Moved = row.mine - res.Removed - stayed
	if stayed > 0 {
		res.Blocked = []pruner.Block{{Constraint: a.vetoers(), Table: a.table.name.String(), Rows: stayed}}
	}
	return res, row, xid, nil
}

func (a *Arm) vetoers() string { return vetoersOf(a.triggers) }

// vetoersOf names the triggers that can keep a row from being deleted without an error.
func vetoersOf(triggers []trigger) string {
	var names []string
	for _, t := range triggers {
		if t.before && t.row {
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return "unknown"
	}
	return strings.Join(names, ", ")
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) int(f field) int { return int(p.int64(f)) }

func (p *parser) int64(f field) int64 {
	n, err := strconv.ParseInt(f.text, 10, 64)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("the server answered %q where a number is due", f.text)
	}
	return n
}

func (p *parser) row(a answer) batchRow {
	r := batchRow{
		examined: p.int(a[0]), outside: p.int(a[1]), held: p.int(a[2]), locked: p.int(a[3]), orphan: p.int(a[4]),
		picked: p.int(a[5]), mine: p.int(a[6]), removed: -1, ok: a[8].text == "t", last: a[11].text,
		unusable: p.int(a[12]), raised: p.int(a[13]),
	}
	if !a[7].null {
		r.removed = p.int(a[7])
	}
	if !a[10].null {
		edge := p.int64(a[10])
		r.edge = &edge
	}
	if strings.HasPrefix(r.last, "[") {
		if err := json.Unmarshal([]byte(r.last), &r.key); err != nil && p.err == nil {
			p.err = fmt.Errorf("the server answered %q where a key is due", r.last)
		}
	}
	return r
}
