package page

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/bench/internal/measure"
	"github.com/prunectl/prunectl/bench/internal/place"
	"github.com/prunectl/prunectl/bench/internal/study"
	"github.com/prunectl/prunectl/bench/internal/workload"
)

// result is one of each.
func result() study.Result {
	curve := study.Curve{Name: "ours <&>", Limit: 500}
	for n := range 20 {
		curve.Batches = append(curve.Batches, measure.Batch{Removed: 500, Cost: place.Cost{Buffers: int64(1000 + n)}})
	}
	idle := func(own, history int, buffers int64) study.DomainIdle {
		return study.DomainIdle{
			Domain: workload.Domain{Own: own, Held: own / 10, History: history}, Deliveries: 9999,
			Fresh: []study.ArmCost{{Arm: "arm one", Buffers: 500}}, Again: []study.ArmCost{{Arm: "arm one", Buffers: 30}},
			Arms:   []study.ArmCost{{Arm: "arm one", Buffers: buffers}, {Arm: "arm two", Buffers: 2}},
			Shapes: []study.ArmCost{{Arm: "windows filtered", Buffers: 100 * buffers}},
		}
	}
	chunks := study.Curve{Name: "ours", Limit: 500, Batches: []measure.Batch{{Removed: 500, Cost: place.Cost{Buffers: 700}}, {Removed: 500, Cost: place.Cost{Buffers: 710}}, {Removed: 1}}}
	return study.Result{
		Domain: &study.Domain{
			Idle: []study.DomainIdle{idle(5000, 6000, 6), idle(50_000, 6000, 8), idle(5000, 60_000, 7)}, Fanout: chunks,
			Records: []study.Record{{Kind: "default event", Of: "event", Rows: 10, Plain: place.Cost{WAL: 1000}, Whole: place.Cost{WAL: 1040}, Time: 1.01}},
			Drains:  []study.Row{{Subject: "ids fetched, by policy", Limit: 5000}},
		},
		When: time.Date(2025, 1, 2, 3, 4, 0, 0, time.UTC), Command: "go run ./bench -short", Server: "PostgreSQL 15.1", Own: true, Cores: 2, Size: study.Short(),
		Events: []study.Row{{Subject: "one DELETE", Removed: 1234567, Batches: 1, RowsPerSecond: 1e6, OfFirst: 1}, {Subject: "ours", Ours: true, Limit: 500, OfFirst: 0.8, P99: 9}},
		Jobs:   []study.Row{{Subject: "ids fetched", Limit: 500}},
		Curves: []study.Curve{curve}, Owners: []study.Owner{{PerOwner: 100, Time: 1.02}},
		Idle:       []study.Idle{{Rows: 5000, Before: 6, After: 48, Reading: 22, Held: 55}, {Rows: 100_000, Before: 9, After: 862, Reading: 396, Held: 1100}},
		First:      []study.First{{Subject: "id IN", Index: "state", Limit: 50}},
		Foreground: []study.Foreground{{Beside: "nothing", Rate: 900, TPS: 899, P99: 5}, {Beside: "ours", Rate: 900, TPS: 890, P99: 7}},
		Bounds:     []study.Bound{{Work: "this & that", Want: "at most 1", Got: "0.5", Met: true}, {Work: "the other", Want: "at most 1", Got: "2"}, {Work: "beside", Got: "3", Shown: true}},
	}
}

// TestHTML holds that the page is whole: every table, bound and plot is on it, it is well-formed, and it loads nothing.
func TestHTML(t *testing.T) {
	html, err := HTML(result())
	if err != nil {
		t.Fatal(err)
	}
	s := string(html)
	if loads := regexp.MustCompile(`(?i)(src|href|@import|url\()`).FindString(s); loads != "" || strings.Contains(s, "<script") {
		t.Errorf("the page loads something: %q", loads)
	}
	if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || strings.Contains(s, "ZgotmplZ") || strings.Contains(s, "<no value>") {
		t.Error("the page shows what is no value")
	}
	for _, want := range []string{
		"1 of 2 met", "this &amp; that", "ours &lt;&amp;&gt;", "Batch cost over the drain", "Idle cost over history", "Throughput against the alternatives", "Foreground latency",
		"Drains of events", "Drains of jobs", "Owner lock", "Idle sweeps", "First batch of jobs", "pgbench at half", "1,000,000", "Idle cost over live population", "Idle cost over history of domain events", "One event with many deliveries",
		"Idle sweeps of domain events", "What retention adds", "Drains of domain events", "4.0 %", "windows filtered", "go run ./bench -short: short form, PostgreSQL 15.1",
		"prefers-color-scheme: dark", "@media print",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if n := strings.Count(s, "<polyline") - strings.Count(s, `<svg viewBox="0 0 30 10">`); n != 4+3+3+1 {
		t.Errorf("%d lines are drawn; want 11", n)
	}
	if n := strings.Count(s, "<rect"); n != 4 {
		t.Errorf("%d bars are drawn; want 4", n)
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(s, -1) {
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
			t.Errorf("a plot is not well-formed: %v", err)
		}
	}
}

// TestNothing: a result without a figure is a page without plots, and no panic.
func TestNothing(t *testing.T) {
	html, err := HTML(study.Result{})
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(html), "<svg") {
		t.Error("a plot of nothing is shown")
	}
	if err := Tables(new(strings.Builder), study.Result{}); err != nil {
		t.Error(err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, result()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back study.Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result(), back); diff != "" {
		t.Errorf("what was read back differs (-written +read):\n%s", diff)
	}
	if err := Write(filepath.Join(dir, "nowhere"), result()); err == nil {
		t.Error("a folder that is not there is no error")
	}
}

func TestTables(t *testing.T) {
	var out strings.Builder
	if err := Tables(&out, result()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"go run ./bench -short: short form, PostgreSQL 15.1, a server of the bench's own, 2 cores, 2025-01-02 03:04Z\n",
		"\nBounds\nwork         want       got  met\nthis & that  at most 1  0.5  yes\nthe other    at most 1  2    no\nbeside                  3    -\n",
		"\nWhat retention adds", "+4.0 %", "\nDrains of events\n", "one DELETE    all        1",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables do not have %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), " \n") {
		t.Error("a line ends in a blank")
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("%d is shown as %s; want %s", n, got, want)
		}
	}
}
