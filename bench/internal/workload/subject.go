package workload

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Batch is what one batch of a subject did.
type Batch struct {
	Arm      string // of ours
	Examined int    // 0 where the subject does not say
	Removed  int    // rows of all tables
	Took     time.Duration
	Limit    int // 0: none
}

// Subject is one way to remove what is due.
type Subject struct {
	Name  string
	About string
	Limit int  // rows of a batch at most; 0: all at once
	Ours  bool // it is our own sweep
	// Open makes ready on an idle connection: what is done once, and not for each batch.
	Open func(ctx context.Context, conn *pgx.Conn) (Drain, error)
}

// Drain removes batch by batch until nothing due is left, and tells each of them. It ends early with what each returns, but
// for ErrEnough, which is no error.
type Drain func(ctx context.Context, each func(Batch) error) error

// ready is an Open that needs nothing but the connection.
func ready(drain func(ctx context.Context, conn *pgx.Conn, each func(Batch) error) error) func(context.Context, *pgx.Conn) (Drain, error) {
	return func(_ context.Context, conn *pgx.Conn) (Drain, error) {
		return func(ctx context.Context, each func(Batch) error) error { return drain(ctx, conn, each) }, nil
	}
}

// Twice is the subject two times over, in one session.
func Twice(s Subject) Subject {
	open := s.Open
	s.Open = func(ctx context.Context, conn *pgx.Conn) (Drain, error) {
		drain, err := open(ctx, conn)
		return func(ctx context.Context, each func(Batch) error) error {
			if err := drain(ctx, each); err != nil {
				return err
			}
			return drain(ctx, each)
		}, err
	}
	return s
}

// ErrEnough ends a drain early.
var ErrEnough = errors.New("enough was seen")

// loop repeats a batch until it says that it was the last.
func loop(ctx context.Context, limit int, each func(Batch) error, one func(context.Context) (removed int, last bool, err error)) error {
	for {
		start := time.Now()
		removed, last, err := one(ctx)
		took := time.Since(start)
		if err != nil {
			return err
		}
		if err := each(Batch{Removed: removed, Took: took, Limit: limit}); err != nil {
			return enough(err)
		}
		if last {
			return nil
		}
	}
}

func enough(err error) error {
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}
