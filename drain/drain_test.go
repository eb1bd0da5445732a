package drain

import "testing"

func TestRunDrains(t *testing.T) {
	b := newBench(sweep)
	fill(b.table, 1, 2500, "done")
	fill(b.table, 2501, 40, "running")
	r, err := b.run(t, Bounds{})
	t.Log(r, err, b.spy.limits(), b.left())
}
