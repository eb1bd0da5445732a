package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// proxy stands between a client and a server, sees every message of the protocol, and can cut the line at one.
type proxy struct {
	l net.Listener

	mu     sync.Mutex
	server string // host:port, or the path of a socket
	watch  func(message) verdict
	links  []*link
	number int
}

// message is one message on its way. kind is 0 for a client's first, which has none.
type message struct {
	link       int // which connection, from 1
	fromServer bool
	kind       byte
	body       string
}

// cancels says that the message asks the server to cancel another connection's statement.
func (m message) cancels() bool {
	return m.kind == 0 && len(m.body) == 12 && binary.BigEndian.Uint32([]byte(m.body)) == 80877102
}

// sql is the text of a Parse or a Query.
func (m message) sql() string {
	switch {
	case m.fromServer:
		return ""
	case m.kind == 'Q':
		return strings.TrimSuffix(m.body, "\x00")
	case m.kind == 'P':
		_, rest, _ := strings.Cut(m.body, "\x00")
		sql, _, _ := strings.Cut(rest, "\x00")
		return sql
	}
	return ""
}

// verdict is what becomes of a message.
type verdict int

const (
	pass     verdict = iota
	drop             // it does not arrive, and the line is cut
	passThen         // it arrives, and then the line is cut
	swallow          // it does not arrive, and nobody is told
)

type link struct{ client, server net.Conn }

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

func newProxy(t *testing.T, conn *pgx.Conn) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l}
	p.redirect(conn)
	t.Cleanup(func() {
		_ = l.Close()
		p.cutAll()
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
	return p
}

// redirect sends new connections to the server of conn.
func (p *proxy) redirect(conn *pgx.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := conn.Config()
	p.server = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		p.server = c.Host + "/.s.PGSQL." + strconv.Itoa(int(c.Port))
	}
}

// through has a connection go through the proxy, unencrypted.
func (p *proxy) through(c *pgx.ConnConfig) {
	host, port, _ := net.SplitHostPort(p.l.Addr().String())
	n, _ := strconv.Atoi(port)
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = host, uint16(n), nil, nil
}

// on has f judge every message from now on.
func (p *proxy) on(f func(message) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// cutAll cuts every line.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.close()
	}
}

func (p *proxy) connect(client net.Conn) {
	p.mu.Lock()
	network := "tcp"
	if strings.HasPrefix(p.server, "/") {
		network = "unix"
	}
	server, err := net.Dial(network, p.server)
	if err != nil {
		p.mu.Unlock()
		_ = client.Close()
		return
	}
	l := &link{client, server}
	p.links = append(p.links, l)
	p.number++
	n := p.number
	p.mu.Unlock()
	go p.pump(l, n, client, server, false)
	p.pump(l, n, server, client, true)
}

func (p *proxy) pump(l *link, n int, from, to net.Conn, fromServer bool) {
	defer l.close()
	first := !fromServer
	for {
		var head []byte
		if !first {
			head = make([]byte, 1)
			if _, err := io.ReadFull(from, head); err != nil {
				return
			}
		}
		size := make([]byte, 4)
		if _, err := io.ReadFull(from, size); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size)-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		m := message{link: n, fromServer: fromServer, body: string(body)}
		if !first {
			m.kind = head[0]
		}
		first = false
		p.mu.Lock()
		v := pass
		if p.watch != nil {
			v = p.watch(m)
		}
		p.mu.Unlock()
		if v == pass || v == passThen {
			if _, err := to.Write(append(append(head, size...), body...)); err != nil {
				return
			}
		}
		if v == drop || v == passThen {
			return
		}
	}
}
