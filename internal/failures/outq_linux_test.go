package failures

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// arrived waits until the other side's kernel has all that was written: a reset takes along what is still on its way.
func arrived(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := 0
		if raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) != nil || left == 0 {
			return
		}
	}
}
