package measure

import (
	"context"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// trips counts round trips: how often something was sent after something was received. One connection at a time.
type trips struct {
	n       int
	sending bool
}

func (t *trips) count(c *pgconn.Config) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, t}, nil
	}
}

type countedConn struct {
	net.Conn
	t *trips
}

func (c *countedConn) Write(b []byte) (int, error) {
	if !c.t.sending {
		c.t.n++
		c.t.sending = true
	}
	return c.Conn.Write(b)
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.t.sending = false
	}
	return n, err
}
