package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// The plots are laid out in these units; the page scales them to its width.
const (
	width, height          = 720.0, 300.0
	left, right, top, base = 70.0, 14.0, 12.0, 40.0
	barHeight              = 26.0
)

// lines is a plot of series over one axis.
type lines struct {
	Title, X, Y string
	Note        string
	Series      []series
	XTicks      []tick
	YTicks      []tick
}

type series struct {
	Name   string
	Class  string // of the style sheet: the colour
	Points string // of the polyline
	Dots   []dot  // where there are few points
}

type dot struct{ X, Y float64 }

type tick struct {
	At   float64
	Text string
}

// Empty says that there is nothing to show.
func (p lines) Empty() bool {
	return !slices.ContainsFunc(p.Series, func(s series) bool { return s.Points != "" })
}

// data is a series before it is laid out.
type data struct {
	name string
	x, y []float64
}

// plotLines lays out series, y logarithmic. So is x if logX says so; else it begins at zero.
func plotLines(title, x, y, note string, logX bool, all []data) lines {
	p := lines{Title: title, X: x, Y: y, Note: note}
	maxX, maxY, minX, minY := 0.0, 0.0, math.Inf(1), math.Inf(1)
	for _, d := range all {
		for i := range d.x {
			maxX, minX = max(maxX, d.x[i]), min(minX, d.x[i])
			maxY, minY = max(maxY, d.y[i]), min(minY, d.y[i])
		}
	}
	ax, ay := axis{to: maxX}, logarithmic(minY, maxY)
	if logX {
		ax = logarithmic(minX, maxX)
	}
	ax.pixels, ay.pixels = [2]float64{left, width - right}, [2]float64{height - base, top}
	p.XTicks, p.YTicks = ax.ticks(), ay.ticks()
	for n, d := range all {
		s := series{Name: d.name, Class: "c" + strconv.Itoa(n)}
		for i := range d.x {
			at := dot{ax.at(d.x[i]), ay.at(d.y[i])}
			s.Points += fmt.Sprintf("%.1f,%.1f ", at.X, at.Y)
			if len(d.x) < 10 {
				s.Dots = append(s.Dots, at)
			}
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// axis maps values to places.
type axis struct {
	from, to float64
	log      bool
	pixels   [2]float64
}

func logarithmic(from, to float64) axis {
	return axis{from: math.Pow(10, math.Floor(math.Log10(max(1, from)))), to: math.Pow(10, math.Ceil(math.Log10(max(2, to)))), log: true}
}

func (a axis) at(v float64) float64 {
	part := 0.0
	switch {
	case a.log:
		part = math.Log(max(v, a.from)/a.from) / math.Log(a.to/a.from)
	case a.to > 0:
		part = v / a.to
	}
	return a.pixels[0] + part*(a.pixels[1]-a.pixels[0])
}

func (a axis) ticks() (ts []tick) {
	if a.log {
		for v := a.from; v <= a.to*1.001; v *= 10 {
			ts = append(ts, tick{a.at(v), short(v)})
		}
		return ts
	}
	step := nice(a.to / 5)
	for v := 0.0; v <= a.to*1.001 && step > 0; v += step {
		ts = append(ts, tick{a.at(v), short(v)})
	}
	return ts
}

// nice is the next of 1, 2, 5, 10, 20, 50, ...
func nice(v float64) float64 {
	if v <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// bars is a plot of values by name, one under the other.
type bars struct {
	Title, Note string
	Height      float64
	Bars        []bar
}

// Empty says that there is nothing to show.
func (p bars) Empty() bool { return len(p.Bars) == 0 }

type bar struct {
	Name, Class, Text string
	Y, Middle, Width  float64
	End               float64 // where the text begins
}

// barsLeft is where bars begin, behind their names.
const barsLeft = 262.0

// value is a bar before it is laid out.
type value struct {
	name, text string
	v          float64
	class      string
}

func plotBars(title, note string, all []value) bars {
	p := bars{Title: title, Note: note, Height: float64(len(all))*barHeight + 8}
	most := 0.0
	for _, v := range all {
		most = max(most, v.v)
	}
	for i, v := range all {
		b := bar{Name: v.name, Class: v.class, Text: v.text, Y: float64(i)*barHeight + 4}
		if most > 0 {
			b.Width = v.v / most * (width - barsLeft - 160)
		}
		b.Middle, b.End = b.Y+barHeight/2, barsLeft+b.Width+6
		p.Bars = append(p.Bars, b)
	}
	return p
}
