package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	store "github.com/prunectl/prunectl/inboxoutbox/postgres"
	"github.com/prunectl/prunectl/inboxoutbox/retention"
	"github.com/prunectl/prunectl/migrations/preflight"
)

// component is the one that this program is made for.
const component = "inbox_outbox"

// consumer handles messages, delivers the outbox and cleans up.
type consumer struct {
	settings
	pool   *pgxpool.Pool
	store  *store.Store
	broker broker
	ready  *readiness
	stop   <-chan struct{}

	handled, repeated, delivered int // events, deliveries of such as were handled before, records
}

func run(ctx context.Context, pool *pgxpool.Pool, schema string, args []string) error {
	s, err := parse(schema, args)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	go func() {
		got := <-signals
		signal.Stop(signals) // a second one ends it at once
		log.Printf("%s: ending after the batch in hand", got)
		close(stop)
	}()
	if err := start(ctx, pool, s); err != nil {
		return err
	}
	c := &consumer{
		settings: s, pool: pool, store: store.New(store.Options{Schema: schema}), stop: stop,
		broker: broker{pool: pool, ackTimeout: s.ackTimeout, redelivery: s.policy.Replay.Redelivery},
		ready:  &readiness{pool: pool, schema: schema, policy: s.policy, keep: s.recheck},
	}
	return c.run(ctx)
}

// start refuses a schema that this program was not made for, and a policy that is not the one of this database. It is asked
// before anything is listened to, taken or removed, and changes no schema.
func start(ctx context.Context, pool *pgxpool.Pool, s settings) error {
	report, err := preflight.Check(ctx, pool, component, s.schema)
	if err != nil {
		return err
	}
	if report.Err() != nil {
		return errors.New(report.String())
	}
	log.Print(report)
	agreed, err := retention.Agree(ctx, pool, s.schema, s.policy, s.replace)
	if err != nil {
		return err
	}
	log.Print(agreed)
	return nil
}

// run works until it is stopped.
func (c *consumer) run(ctx context.Context) error {
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c.answers(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Printf("%s is at work, http://%s/readyz says whether all is well", c.name, listener.Addr())

	var loops sync.WaitGroup
	loops.Go(func() { c.loop(ctx, c.poll, c.consume) })
	loops.Go(func() { c.loop(ctx, c.poll, c.dispatch) })
	loops.Go(func() { c.loop(ctx, c.policy.CleanupInterval, c.cleanup) })
	loops.Wait()

	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = server.Shutdown(ctx)
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	log.Printf("%s has ended: %d events handled, %d deliveries of events that were handled before, %d records sent", c.name, c.handled, c.repeated, c.delivered)
	if err != nil {
		return fmt.Errorf("answer at %s: %w", c.listen, err)
	}
	return nil
}

// loop makes passes until the consumer is stopped: one after the other while there is work, with a pause where there is none.
// What fails is logged and tried again: a database that is away comes back. While the consumer is not ready no pass begins,
// for a consumer takes its work itself, and no load balancer keeps it away.
func (c *consumer) loop(ctx context.Context, pause time.Duration, pass func(context.Context) (int, error)) {
	for !c.stopped() {
		wait := pause
		if c.ready.check(ctx) != nil {
			wait = c.recheck
		} else {
			n, err := pass(ctx)
			if err != nil {
				log.Print(err)
			} else if n > 0 {
				continue
			}
		}
		select {
		case <-c.stop:
		case <-time.After(wait):
		}
	}
}

func (c *consumer) stopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}
