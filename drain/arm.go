package drain

import (
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
	"github.com/prunectl/prunectl/pruner"
)

// maxIsolated is how many rows of a pass are stepped over because they cannot go, and how many because they stay locked.
// More of them are no exceptions, and finding each costs some twenty batches.
const maxIsolated = 100

// Arm is one arm of a sweep. Its Pruner must use the Cutoff's window.
type Arm struct {
	Name       string
	Pruner     pruner.Pruner
	Cutoff     policy.Cutoff
	CountsHeld bool // policy.Arm.CountsHeld
}

// pass is an arm on its way: where it is, and what its next batch is to be.
type pass struct {
	Arm
	report Report // the sums; the tallies are in now and whole
	second bool   // it is the second pass
	at     pruner.Cursor
	pace   pace
	watch  watch
	mode   pruner.Mode // Remove, or SkipLocked while batches meet locked rows

	// hunt is how many rows from the cursor on hold the one that a batch failed on; 0: nothing is searched. step is the mode
	// of the next batch once it is found.
	hunt    int
	step    pruner.Mode
	block   pruner.Block // what refused the row that is stepped over
	refused int          // rows of this pass that were isolated because they cannot go
	waited  int          // and because they stay locked

	now   tally
	whole *tally // of the last whole pass
	began bool   // a batch was committed
	done  bool
}

func newPass(a Arm, b Bounds) *pass {
	p := &pass{Arm: a, pace: newPace(b.Limit, b.BatchTarget)}
	p.report = Report{Name: a.Name, Cutoff: a.Cutoff, CountsHeld: a.CountsHeld}
	return p
}

// next is the limit and the mode of the next batch.
func (p *pass) next() (int, pruner.Mode) {
	switch {
	case p.step != pruner.Remove:
		return 1, p.step
	case p.hunt > 0:
		return min(p.pace.limit, max(1, p.hunt/2)), p.mode
	}
	return p.pace.limit, p.mode
}

// count adds what a batch committed to the sums. Beside an error that is what the error leaves true, mostly nothing.
func (p *pass) count(res pruner.Result, took time.Duration) {
	r := &p.report
	r.Examined += res.Examined
	r.Removed += res.Removed
	r.Children += res.Children
	r.Vain += res.Examined - res.Removed
	if removedSome(res) {
		r.Batches++
	}
	r.SlowestBatch = max(r.SlowestBatch, took)
}

// ended goes on from a batch that was committed. It reports an error where the Pruner goes in circles.
func (p *pass) ended(limit int, res pruner.Result, took time.Duration) error {
	p.began = true
	if p.step != pruner.Remove {
		if p.step == pruner.StepStuck && len(res.Blocked) == 0 && res.Stuck > 0 {
			p.block.Rows = res.Stuck
			res.Blocked = []pruner.Block{p.block}
		}
		p.step, p.hunt = pruner.Remove, 0
		p.pace.searched()
	} else {
		p.pace.ended(limit, res.Examined+res.Children, took)
		looked := res.Examined
		if looked == 0 {
			looked = res.Children // a chunk: what it failed on is among them
		}
		p.hunt = max(0, p.hunt-looked)
	}
	if p.hunt == 0 && res.Locked == 0 {
		p.mode = pruner.Remove
	}
	p.now.add(res)
	if res.End {
		p.passEnded()
		return nil
	}
	if p.watch.circles(res) {
		return fmt.Errorf("%w: it came back to cursor %q, removed nothing and did not end", ErrContract, res.Next)
	}
	p.at = res.Next
	return nil
}

// passEnded ends the drain of the arm, or begins its one more pass.
func (p *pass) passEnded() {
	t := p.now
	p.whole = &t
	if t.locked+t.moved > 0 && !p.second {
		p.second = true
		p.at, p.now, p.watch = pruner.Cursor{}, tally{}, watch{}
		p.mode, p.hunt, p.refused, p.waited = pruner.Remove, 0, 0, 0
		return
	}
	p.done = true
	switch {
	case t.stuck > 0:
		p.report.Stop = StopStuck
	case t.locked+t.moved > 0:
		p.report.Stop = StopLocked
	default:
		p.report.Stop = StopDrained
	}
}

// isRefused searches for the row that the database refused to delete, or steps over it once it stands alone. It reports an
// error where the drain cannot go on.
func (p *pass) isRefused(limit int, e *pruner.RefusedError) error {
	switch {
	case limit > 1:
		p.hunt = limit
	case p.step != pruner.Remove:
		return e // it was asked to remove nothing
	case p.refused == maxIsolated:
		return fmt.Errorf("more than %d rows cannot be removed: %w", maxIsolated, e)
	default:
		p.refused++
		p.step, p.block = pruner.StepStuck, e.Block
	}
	return nil
}

// isLocked finds a way past a row that stays locked. It reports false where there is none.
func (p *pass) isLocked(limit int, e *pruner.LockTimeoutError) bool {
	switch {
	case e.Table != "" || p.step != pruner.Remove:
		return false
	case e.CanSkip && p.mode == pruner.Remove:
		p.mode = pruner.SkipLocked
	case limit > 1:
		p.hunt = limit
	case p.waited == maxIsolated:
		return false
	default:
		p.waited++
		p.step = pruner.StepLocked
	}
	return true
}

// snapshot is the report so far.
func (p *pass) snapshot() Report {
	r := p.report
	if p.whole != nil {
		r.setTally(*p.whole)
	} else {
		r.setTally(p.now)
	}
	return r
}

// removedSome reports whether a batch removed something. A chunk removes children only, and it too is progress.
func removedSome(res pruner.Result) bool { return res.Removed+res.Children > 0 }

// watch sees that a pass gets on: a cursor that comes back, with nothing removed since, is a circle. It remembers one
// cursor, and moves on to a later one after twice as many batches each time, so that it finds a circle of any length.
type watch struct {
	mark         pruner.Cursor
	steps, power int
	others       bool // somebody changed rows since the mark was passed
	moved        int  // how often the mark was met again for that
}

func (w *watch) circles(res pruner.Result) bool {
	// A batch that looks at nothing goes to the chunks of a row, or comes back from a row that changed meanwhile.
	w.others = w.others || res.Moved > 0 || res.Examined == 0 && !res.Next.IsZero()
	switch {
	case removedSome(res):
		*w = watch{mark: res.Next}
		return false
	case res.Next == w.mark:
		// Rows that others change can leave the place as it was, but not for ever.
		others := w.others
		w.others, w.moved = false, w.moved+1
		return !others || w.moved > maxIsolated
	}
	if w.steps >= w.power {
		w.mark, w.steps, w.power = res.Next, 0, max(1, 2*w.power)
	}
	w.steps++
	return false
}
