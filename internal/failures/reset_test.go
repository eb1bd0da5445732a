//go:build unix

package failures

import (
	"strings"
	"testing"

	"github.com/prunectl/prunectl/internal/report"
)

// TestReset resets the line between the command and the server at a place of a batch in mid-sweep, in both protocols, and
// over a sweep whose deletes are counted by the rows that come back as over one whose deletes are counted by the server.
func TestReset(t *testing.T) {
	t.Parallel()
	const (
		at     = 3  // which batch of the sweep it is
		either = -1 // 0 or 1
	)
	for _, c := range []struct {
		name string
		// judge is asked of each message from the batch's BEGIN on.
		judge func(*proxy, message) verdict
		code  int
		says  string // the sweep's error
		// unknown is how many commits are, in a pipeline; in the simple protocol COMMIT is sent by itself, and what goes
		// before it is never in doubt.
		unknown, simple int
		slow            bool   // the command asks as long as it ever does
		answer          string // what the server said of the outcome; "" where it was not asked
	}{
		{name: "in the statement", code: 1, says: "connection was lost before the batch was answered", unknown: 1,
			judge: func(_ *proxy, m message) verdict {
				if m.fromServer && m.kind == 'C' { // of BEGIN
					return drop
				}
				return pass
			}},
		{name: "before COMMIT arrives", code: 1, says: "the connection was lost at COMMIT, and the server rolled it back", answer: "aborted",
			judge: func(_ *proxy, m message) verdict {
				switch {
				case !m.atCommit:
					return pass
				case m.commits() && (m.kind == 'Q' || m.inFlight == 0): // all before it is answered
					return drop
				case m.fromServer && m.inFlight == 0:
					return passReset
				case !m.fromServer:
					return swallow
				}
				return pass
			}},
		{name: "before COMMIT is answered", code: 0, answer: "committed",
			judge: func(_ *proxy, m message) verdict {
				if m.committed() {
					return drop
				}
				return pass
			}},
		{name: "after COMMIT is answered", code: 0, // in the simple protocol that is not the end, so it is asked
			judge: func(_ *proxy, m message) verdict {
				if m.committed() {
					return passReset
				}
				return pass
			}},
		{name: "between two batches", code: 1, unknown: either, // the next one goes to a dead line, which tells at once or later
			judge: func(_ *proxy, m message) verdict {
				if m.fromServer && m.kind == 'Z' && m.hasCommitted {
					return passReset
				}
				return pass
			}},
		{name: "before COMMIT is answered, and the server is gone", code: 1, says: "the outcome of a commit is unknown (transaction ", unknown: 1, simple: 1, slow: true,
			judge: func(p *proxy, m message) verdict {
				if m.committed() {
					p.close()
					return drop
				}
				return pass
			}},
	} {
		for _, way := range []struct{ table, protocol string }{{"parents", "exec"}, {"jobs", "exec"}, {"jobs", "simple_protocol"}} {
			table, protocol := way.table, way.protocol
			if c.slow && protocol != "exec" {
				continue // it takes as long as the command ever asks
			}
			t.Run(c.name+", "+table+", "+protocol, func(t *testing.T) {
				t.Parallel()
				s := onShared(t, 120, 300)
				p := s.through()
				s.dsn += "&default_query_exec_mode=" + protocol
				batch, done := 0, false
				p.on(func(m message) verdict {
					if m.begins() {
						batch++
					}
					if done || batch < at {
						return pass
					}
					v := c.judge(p, m)
					done = v == drop || v == passReset
					return v
				})
				file := alone(table, "")
				before := s.all
				r := s.start(file).must(t, c.code)
				s.quiet()
				s.whole()
				s.honest(before, r)
				sw, unknown, answer := of(t, r, table), c.unknown, c.answer
				if protocol != "exec" {
					unknown = c.simple
				}
				if c.unknown == either {
					unknown = min(sw.UnknownCommits, 1)
				}
				if c.name == "after COMMIT is answered" && protocol != "exec" {
					answer = "committed"
				}
				if !done || sw.UnknownCommits != unknown || sw.Drained != (c.code == 0) || sw.Removed == 0 {
					t.Errorf("reset %t; %+v", done, sw)
				}
				if c.code != 0 && (sw.Stop != report.Failed || sw.Error == nil || unknown == c.unknown && !strings.Contains(sw.Error.Message, c.says)) {
					t.Errorf("stop %s, error %+v", sw.Stop, sw.Error)
				}
				asked, answered := p.asks()
				if answer == "" && asked != 0 || answer != "" && answered[answer] != 1 {
					t.Errorf("asked %d times and answered %v; want %q", asked, answered, answer)
				}
				t.Logf("asked %d, answered %v", asked, answered)
				s.dsn = s.db.DSN
				s.finish(policy(""))
			})
		}
	}
}
