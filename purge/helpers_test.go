package purge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
	"github.com/prunectl/prunectl/pruner/tenant"
)

// script is a Remover that does as it is told, and keeps a log of what it was asked.
type script struct {
	steps []*step
	log   []string // "jobs", "jobs+" from a cursor on, "look"
	// onLook is called before a look counts; n counts looks from 1. What it returns is the look's error.
	onLook func(n int) error
	proof  *tenant.Proof // answers a look in place of the counts
	bounds []int         // of the looks
}

// step has rows that go without resistance, but what answer says.
type step struct {
	spec  tenant.Spec
	rows  int
	calls []tenant.Batch
	// answer, if it is set and says so, answers in place of the rows. n counts calls from 1.
	answer func(n int, b tenant.Batch) (pruner.Result, error, bool)
	of     *script
}

var looked = time.Date(2026, 11, 30, 2, 17, 4, 0, time.UTC)

// tables are a script over tables of these rows: "runs 10, jobs 2500".
func tables(rows string) *script {
	s := &script{}
	for _, part := range strings.Split(rows, ", ") {
		st := &step{of: s, spec: tenant.Spec{Table: policy.Name{Schema: "public"}, Column: "tenant_id"}}
		if _, err := fmt.Sscanf(part, "%s %d", &st.spec.Table.Table, &st.rows); err != nil {
			panic(err)
		}
		s.steps = append(s.steps, st)
	}
	return s
}

func (s *script) Steps() []tenant.Step {
	var out []tenant.Step
	for _, st := range s.steps {
		out = append(out, st)
	}
	return out
}

func (s *script) Look(_ context.Context, bound int) (tenant.Proof, error) {
	s.log = append(s.log, "look")
	s.bounds = append(s.bounds, bound)
	if s.onLook != nil {
		if err := s.onLook(len(s.bounds)); err != nil {
			return tenant.Proof{}, err
		}
	}
	if s.proof != nil {
		return *s.proof, nil
	}
	p := tenant.Proof{At: looked}
	for _, st := range s.steps {
		p.Left = append(p.Left, tenant.Left{Rows: min(st.rows, bound), More: st.rows >= bound})
	}
	return p, nil
}

// looks is how many there were.
func (s *script) looks() int { return len(s.bounds) }

func (s *step) Spec() tenant.Spec { return s.spec }

func (s *step) Remove(_ context.Context, b tenant.Batch) (pruner.Result, error) {
	s.calls = append(s.calls, b)
	entry := s.spec.Table.Table
	if !b.After.IsZero() {
		entry += "+"
	}
	s.of.log = append(s.of.log, entry)
	if s.answer != nil {
		if res, err, ok := s.answer(len(s.calls), b); ok {
			s.rows -= res.Removed
			return res, err
		}
	}
	n := min(s.rows, b.Limit)
	s.rows -= n
	return pruner.Result{Examined: n, Removed: n, Next: pruner.NewCursor(fmt.Sprint(len(s.calls))), End: n < b.Limit}, nil
}

// only answers the call of this number.
func only(call int, res pruner.Result, err error) func(int, tenant.Batch) (pruner.Result, error, bool) {
	return func(n int, _ tenant.Batch) (pruner.Result, error, bool) { return res, err, n == call }
}

// always answers every call.
func always(res pruner.Result, err error) func(int, tenant.Batch) (pruner.Result, error, bool) {
	return func(int, tenant.Batch) (pruner.Result, error, bool) { return res, err, true }
}
