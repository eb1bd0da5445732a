//go:build unix

package failures

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/prunectl/prunectl/internal/pgtest"
)

// proxy stands between the command and the server, sees every message of the protocol, and resets the line at one.
type proxy struct {
	l net.Listener

	mu     sync.Mutex
	server string // host:port, or the path of a socket
	closed bool   // new lines are reset at once
	keeps  bool   // the command is not told when its server is gone
	watch  func(message) verdict
	lines  map[*line]bool
	number int

	asked    int            // lines on which the outcome of a transaction was asked
	answered map[string]int // by what the server said last on a line
}

// line is one connection through the proxy.
type line struct {
	n              int // from 1
	client, server net.Conn

	inFlight     int  // statements of a pipeline that were sent before COMMIT and are not answered
	atCommit     bool // COMMIT was sent
	hasCommitted bool // it was answered
	asks         bool
}

// reset ends both halves without a farewell. What was passed on before has arrived.
func (l *line) reset() {
	for _, c := range []net.Conn{l.client, l.server} {
		arrived(c)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// message is one message on its way. kind is 0 for a client's first, which has none.
type message struct {
	*line
	fromServer bool
	kind       byte
	body       string
}

// sql is the text of a Parse or a Query.
func (m message) sql() string {
	switch {
	case m.fromServer:
	case m.kind == 'Q':
		return strings.TrimSuffix(m.body, "\x00")
	case m.kind == 'P':
		_, rest, _ := strings.Cut(m.body, "\x00")
		sql, _, _ := strings.Cut(rest, "\x00")
		return sql
	}
	return ""
}

// first is the first value of a row.
func (m message) first() string {
	const columns, size = 2, 4
	if len(m.body) < columns+size {
		return ""
	}
	rest := m.body[columns+size:]
	return rest[:min(len(rest), int(max(0, int32(binary.BigEndian.Uint32([]byte(m.body[columns:]))))))]
}

// begins says that the message begins a batch.
func (m message) begins() bool { return strings.Contains(m.sql(), "BEGIN ISOLATION LEVEL") }

// commits says that the message asks for a COMMIT.
func (m message) commits() bool { return strings.EqualFold(m.sql(), "commit") }

// committed says that the message answers a COMMIT.
func (m message) committed() bool { return m.fromServer && m.kind == 'C' && m.body == "COMMIT\x00" }

// verdict is what becomes of a message.
type verdict int

const (
	pass      verdict = iota
	drop              // it does not arrive, and the line is reset
	passReset         // it arrives, and then the line is reset
	swallow           // it does not arrive, and nobody is told
)

// through puts a proxy in front of the scene's server, and the command behind it.
func (s *scene) through() *proxy {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &proxy{l: l, lines: map[*line]bool{}, answered: map[string]int{}}
	p.redirect(s.t, s.db)
	s.t.Cleanup(func() {
		_ = l.Close()
		p.resetAll()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.connect(client)
		}
	}()
	s.dsn = p.dsn(s.t, s.db)
	return p
}

// dsn is the connection string of a database through the proxy.
func (p *proxy) dsn(t *testing.T, db *pgtest.DB) string {
	t.Helper()
	u, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.l.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// redirect sends new lines to the server of db.
func (p *proxy) redirect(t *testing.T, db *pgtest.DB) {
	t.Helper()
	c, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		p.server = c.Host + "/.s.PGSQL." + strconv.Itoa(int(c.Port))
	}
}

// on has f judge every message from now on.
func (p *proxy) on(f func(message) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// close resets every new line from now on. The caller's f of on holds p.mu.
func (p *proxy) close() { p.closed = true }

// tell resets the lines that are left of a server that is gone.
func (p *proxy) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeps, p.watch = false, nil
	for l := range p.lines {
		l.reset()
	}
}

// resetAll resets every line.
func (p *proxy) resetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.lines {
		l.reset()
	}
}

// asks says on how many lines the outcome of a transaction was asked, and what was answered.
func (p *proxy) asks() (int, map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.answered
}

func (p *proxy) connect(client net.Conn) {
	p.mu.Lock()
	network := "tcp"
	if strings.HasPrefix(p.server, "/") {
		network = "unix"
	}
	p.number++
	l := &line{n: p.number, client: client, server: client}
	if p.closed {
		p.mu.Unlock()
		l.reset()
		return
	}
	server, err := net.Dial(network, p.server)
	if err != nil {
		p.mu.Unlock()
		l.reset()
		return
	}
	l.server = server
	p.lines[l] = true
	p.mu.Unlock()
	go p.pump(l, client, server, false)
	p.pump(l, server, client, true)
}

// pump carries the messages of one direction. What ends one half ends the other.
func (p *proxy) pump(l *line, from, to net.Conn, fromServer bool) {
	cut := false
	defer func() {
		p.mu.Lock()
		kept := p.keeps && fromServer
		if !kept {
			delete(p.lines, l)
		}
		p.mu.Unlock()
		if kept {
			return
		}
		if cut {
			l.reset()
			return
		}
		_ = l.client.Close()
		_ = l.server.Close()
	}()
	for first := !fromServer; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[:4]
		}
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		m := message{line: l, fromServer: fromServer, body: string(body)}
		if !first {
			m.kind = head[0]
		}
		v := p.judge(m)
		if v == pass || v == passReset {
			if _, err := to.Write(append(head, body...)); err != nil {
				return
			}
		}
		if v == drop || v == passReset {
			cut = true
			return
		}
	}
}

func (p *proxy) judge(m message) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.begins():
		m.inFlight, m.atCommit, m.hasCommitted = 0, false, false
	case m.commits():
		m.atCommit = true
	case m.committed():
		m.hasCommitted = true
	case strings.Contains(m.sql(), "pg_xact_status"):
		m.asks = true
		p.asked++
	case m.asks && m.fromServer && m.kind == 'D':
		p.answered[m.first()]++
	}
	switch {
	case !m.fromServer && m.kind == 'E' && !m.atCommit:
		m.inFlight++
	case m.fromServer && m.kind == 'C' && !m.committed():
		m.inFlight--
	}
	if p.watch == nil {
		return pass
	}
	return p.watch(m)
}
