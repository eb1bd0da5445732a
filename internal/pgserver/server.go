package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// oldest is the oldest major version that this project supports.
const oldest = 14

// Server is a server that [Start] started. Its methods may be called from
// several goroutines at once.
type Server struct {
	How     string // which way its programs were found, for a person to read
	Version string // "15.14"
	Major   int    // 15
	BinDir  string // where its programs are
	Data    string // its data folder
	Port    int    // on 127.0.0.1; it stays the same over Restart

	*folder
	opts Options

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil while no server runs
	done chan struct{} // closed when it has ended
}

// Start starts a server and returns when it takes connections. ctx bounds the
// start alone: when it ends before that, nothing is left behind. A server that
// was started must be stopped.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	f, err := newFolder()
	if err != nil {
		return nil, err
	}
	s := &Server{folder: f, opts: o, Data: filepath.Join(f.home, "data")}
	defer func() {
		if err != nil {
			_ = s.Stop()
		}
	}()
	if err = s.findPrograms(ctx); err != nil {
		return nil, err
	}
	if o.Template == "" {
		err = s.initdb(ctx)
	} else {
		_, err = run(ctx, s.home, "cp", "-pR", o.Template, s.Data)
	}
	if err != nil {
		return nil, err
	}
	if o.StandbyOf != nil {
		if err = s.makeStandby(o.StandbyOf); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for try := 1; ; try++ {
		if s.Port, err = freePort(); err != nil {
			return nil, err
		}
		// Between our look and the server's own somebody may take the port.
		if err = s.launch(ctx); err == nil {
			return s, nil
		}
		if try == 5 || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

func (s *Server) findPrograms(ctx context.Context) (err error) {
	switch s.BinDir = s.opts.BinDir; {
	case s.BinDir != "":
		s.How = "the server programs in " + s.BinDir
	default:
		s.BinDir, err = FindBinDir()
		s.How = "local server programs in " + s.BinDir
		if errors.Is(err, ErrNoPrograms) && s.opts.Download {
			s.How = "server programs fetched by embedded-postgres"
			s.BinDir, err = fetchPrograms(ctx, filepath.Join(s.dir, "fetched"), s.opts.repository)
		}
		if err != nil {
			return err
		}
	}
	out, err := run(ctx, s.home, filepath.Join(s.BinDir, program("postgres")), "--version")
	if err != nil {
		return err
	}
	if s.Version, s.Major, err = parseVersion(out); err != nil {
		return err
	}
	if s.Major < oldest {
		return fmt.Errorf("the server programs in %s are PostgreSQL %s; %d or later is needed", s.BinDir, s.Version, oldest)
	}
	return nil
}

func (s *Server) makeStandby(p *Server) error {
	if err := s.writeFile(filepath.Join(s.Data, "standby.signal"), ""); err != nil {
		return err
	}
	// Not an argument: arguments can be read by everyone, and a password may be in it.
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace
	info := fmt.Sprintf("host='%s' port=%d user='%s' password='%s' application_name=standby",
		quote(p.home), p.Port, quote(p.superuser()), quote(p.opts.Password))
	return s.writeFile(filepath.Join(s.Data, "postgresql.auto.conf"), "primary_conninfo = '"+quote(info)+"'\n")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

var errPortTaken = errors.New("postgres did not start: its port on 127.0.0.1 is taken")

// launch starts the server on s.Port and waits until it is ready. The caller
// holds s.mu.
func (s *Server) launch(ctx context.Context) error {
	var args []string
	for _, c := range s.opts.Settings {
		args = append(args, "-c", c)
	}
	args = append(args, "-D", s.Data, "-p", strconv.Itoa(s.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.home, "-c", "logging_collector=off")
	if !s.opts.Durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	log, err := os.Create(filepath.Join(s.home, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// Not ctx: it bounds the start, and the server lives on.
	cmd := newCommand(context.Background(), s.home, filepath.Join(s.BinDir, program("postgres")), args...)
	cmd.Stdout, cmd.Stderr = log, log
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		// As in run: the server must not outlive its thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state is kept in cmd
		}
		close(done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	s.cmd, s.done = cmd, done
	for !s.ready() {
		select {
		case <-done:
			s.cmd = nil
			text := s.Log()
			if strings.Contains(text, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("postgres ended while starting (%s): %s", cmd.ProcessState, tail(text))
		case <-ctx.Done():
			s.end(true)
			return fmt.Errorf("start postgres: %w: %s", ctx.Err(), tail(s.Log()))
		case <-time.After(2 * time.Millisecond): // the server tells it by a file alone
		}
	}
	return nil
}

// ready reads the status line of the server's lock file, as pg_ctl does.
func (s *Server) ready() bool {
	b, _ := os.ReadFile(filepath.Join(s.Data, "postmaster.pid"))
	line := strings.Split(string(b), "\n")
	return len(line) >= 8 && strings.TrimSpace(line[7]) == "ready" &&
		strings.TrimSpace(line[0]) == strconv.Itoa(s.cmd.Process.Pid)
}

// end ends the server, if one runs. The caller holds s.mu.
func (s *Server) end(immediate bool) {
	if s.cmd == nil {
		return
	}
	_ = s.shutdown(immediate) // an error means that it has ended already
	select {
	case <-s.done:
	case <-time.After(15 * time.Second):
		_ = killGroup(s.cmd)
		<-s.done
	}
	s.cmd = nil
}

// Kill ends the server and keeps its folder, for Restart. Immediately means
// as in a crash: connections break, the next start recovers. Otherwise open
// transactions are rolled back and a checkpoint is written.
func (s *Server) Kill(immediate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(immediate)
}

// Restart starts the server again, on the same port and data; one that still
// runs is shut down first. It returns when the server takes connections.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(false)
	return s.launch(ctx)
}

// Stop ends the server at once and removes its folder. The error says what
// could not be removed. Stopping twice does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(true)
	return s.remove()
}

// Log is what the server has logged since its last start.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.home, "log"))
	return string(b)
}

func (s *Server) superuser() string {
	if s.opts.Superuser == "" {
		return "postgres"
	}
	return s.opts.Superuser
}

func (s *Server) user() *url.Userinfo {
	if s.opts.Password != "" {
		return url.UserPassword(s.superuser(), s.opts.Password)
	}
	return url.User(s.superuser())
}

// DSN is the connection string of a database over TCP, as the superuser and
// with the password, if there is one.
func (s *Server) DSN(db string) string {
	u := url.URL{Scheme: "postgres", User: s.user(), Host: fmt.Sprintf("127.0.0.1:%d", s.Port), Path: "/" + db, RawQuery: "sslmode=disable"}
	return u.String()
}

// SocketDSN is the connection string of a database over the Unix socket.
func (s *Server) SocketDSN(db string) string {
	q := url.Values{"host": {s.home}, "port": {strconv.Itoa(s.Port)}}
	u := url.URL{Scheme: "postgres", User: s.user(), Path: "/" + db, RawQuery: q.Encode()}
	return u.String()
}
