package page

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	"github.com/prunectl/prunectl/bench/internal/study"
)

//go:embed page.html
var text string

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{
	"met":  met,
	"down": func(y float64) float64 { return y + 4 }, // of a text beside its line
}).Parse(text))

// placed is a plot with the measures of its frame.
type placed struct {
	P any
	S map[string]float64
}

var sizes = map[string]float64{
	"Width": width, "Height": height, "Left": left, "Right": width - right, "Base": height - base, "BarsLeft": barsLeft, "BarHeight": barHeight - 8,
}

// Write writes bench.json and bench.html into the folder.
func Write(dir string, r study.Result) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	html, err := HTML(r)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{"bench.json": append(data, '\n'), "bench.html": html} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// HTML is the page.
func HTML(r study.Result) ([]byte, error) {
	held, of := 0, 0
	for _, b := range r.Bounds {
		if b.Shown {
			continue
		}
		of++
		if b.Met {
			held++
		}
	}
	var out bytes.Buffer
	err := parsed.Execute(&out, map[string]any{
		"About": about(r), "Met": held, "Of": of, "Bounds": r.Bounds, "Sheets": sheets(r)[1:],
		"Lines": []placed{{curves(r), sizes}, {idle(r), sizes}, {domainLive(r), sizes}, {domainHistory(r), sizes}, {fanout(r), sizes}},
		"Bars":  []placed{{speed(r), sizes}, {load(r), sizes}},
	})
	return out.Bytes(), err
}

func curves(r study.Result) lines {
	var all []data
	for _, c := range r.Curves {
		d := data{name: c.Name}
		if c.Limit != r.Size.Limit {
			d.name += ", " + count(c.Limit) + " a batch"
		}
		for n, b := range c.Batches {
			d.x, d.y = append(d.x, float64(n+1)), append(d.y, float64(b.Buffers))
		}
		all = append(all, d)
	}
	return plotLines("Batch cost over the drain", "batch", "buffers", fmt.Sprintf("Shared buffers of each batch, %s rows at most.", count(r.Size.Limit)), false, all)
}

func idle(r study.Result) lines {
	before, after, reading := data{name: "before any row is due"}, data{name: "after a drain and a VACUUM"}, data{name: "one reading of the held rows"}
	for _, i := range r.Idle {
		x := float64(i.Rows)
		before.x, before.y = append(before.x, x), append(before.y, float64(i.Before))
		after.x, after.y = append(after.x, x), append(after.y, float64(i.After))
		reading.x, reading.y = append(reading.x, x), append(reading.y, float64(i.Reading))
	}
	return plotLines("Idle cost over history", "events", "buffers",
		"Buffers of a sweep that removes nothing. The rows that live runs hold grow with the history: every 50th run is live.", true, []data{before, after, reading})
}

func domainLive(r study.Result) lines {
	return domainIdle(r, "Idle cost over live population", "live domain events", "ten times the live events", func(base, i study.DomainIdle) (float64, bool) {
		return float64(i.Live()), i.History == base.History && i.Own/max(1, base.Own) == i.Held/max(1, base.Held)
	})
}

func domainHistory(r study.Result) lines {
	return domainIdle(r, "Idle cost over history of domain events", "events of the history", "ten times the history", func(base, i study.DomainIdle) (float64, bool) {
		return float64(i.History), i.Own == base.Own && i.Held == base.Held
	})
}

// domainIdle plots over what x says of a population, where it says that the population is on the plot.
func domainIdle(r study.Result, title, axis, what string, x func(base, i study.DomainIdle) (float64, bool)) lines {
	all := []data{{name: "ours"}, {name: "ours, before a VACUUM"}}
	if r.Domain != nil {
		for _, i := range r.Domain.Idle {
			at, on := x(r.Domain.Idle[0], i)
			if !on {
				continue
			}
			first, _ := i.BeforeVacuum()
			ys := []float64{float64(i.Total()), float64(first)}
			for n, s := range i.Shapes {
				if len(all) < 3+n {
					all = append(all, data{name: s.Arm})
				}
				ys = append(ys, float64(s.Buffers))
			}
			for n, y := range ys {
				all[n].x, all[n].y = append(all[n].x, at), append(all[n].y, y)
			}
		}
	}
	return plotLines(title, axis, "buffers", "Buffers of a sweep that finds nothing due, as it is and at "+what+". Ours is four arms, before a VACUUM in the first sweep after dead letters held events.", true, all)
}

func fanout(r study.Result) lines {
	d := data{name: "ours, older snapshot open"}
	if r.Domain != nil {
		for n, b := range r.Domain.Fanout.Chunks() {
			d.x, d.y = append(d.x, float64(n+1)), append(d.y, float64(b.Buffers))
		}
	}
	return plotLines("One event with many deliveries", "chunk", "buffers", fmt.Sprintf("Shared buffers of each full chunk of %s of its %s deliveries.", count(r.Size.Domain.Chunk), count(r.Size.Domain.Fanout)), false, []data{d})
}

func class(ours bool) string {
	if ours {
		return "ours"
	}
	return "theirs"
}

func speed(r study.Result) bars {
	var all []value
	for _, row := range r.Events {
		name := row.Subject
		if row.Limit > 0 {
			name += ", " + count(row.Limit)
		}
		all = append(all, value{name, fmt.Sprintf("%.2f, batch p99 %.0f ms", row.OfFirst, row.P99), row.OfFirst, class(row.Ours)})
	}
	return plotBars("Throughput against the alternatives", fmt.Sprintf("Rows a second of draining (a), one unbounded DELETE being 1; median of %d rounds.", r.Size.Rounds), all)
}

func load(r study.Result) bars {
	var all []value
	for _, f := range r.Foreground {
		c := "theirs"
		if len(f.Beside) > 4 && f.Beside[:4] == "ours" {
			c = "ours"
		}
		all = append(all, value{"beside " + f.Beside, fmt.Sprintf("%.1f ms, %.0f tps", f.P99, f.TPS), f.P99, c})
	}
	rate := 0.0
	if len(r.Foreground) > 0 {
		rate = r.Foreground[0].Rate
	}
	return plotBars("Foreground latency", fmt.Sprintf("p99 of pgbench's transactions, held at %.0f a second: half of what it reaches alone.", rate), all)
}
