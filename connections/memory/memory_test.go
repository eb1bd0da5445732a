package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/prunectl/prunectl/connections"
	"github.com/prunectl/prunectl/connections/connectionstest"
	"github.com/prunectl/prunectl/connections/memory"
)

// The contract holds by any clock: one that goes, one that stands, one that is set back again and again.
func TestConformance(t *testing.T) {
	begin := time.Date(2026, 3, 29, 0, 59, 59, 999_999_999, time.FixedZone("", 3600))
	for name, step := range map[string]time.Duration{"goes": 1001 * time.Nanosecond, "stands": 0, "goes back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			connectionstest.Run(t, func(context.Context) (connections.Store, error) {
				now := begin
				return memory.New(func() time.Time { now = now.Add(step); return now }), nil // under the store's lock
			})
		})
	}
	t.Run("the system's", func(t *testing.T) {
		connectionstest.Run(t, func(context.Context) (connections.Store, error) { return memory.New(nil), nil })
	})
}

// A clock that goes back takes no time of a row with it.
func TestTimesGoForward(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := memory.New(func() time.Time { return now })
	c, err := s.Create(t.Context(), connections.Draft{Tenant: "t", ID: "c", Kind: "k", Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	name := "m"
	updated, err := s.Update(t.Context(), "t", "c", connections.Change{Name: &name})
	if err != nil || !updated.Updated.Equal(now) || !updated.Created.Equal(c.Created) {
		t.Errorf("updated %+v, %v", updated, err)
	}
	now = now.Add(-2 * time.Hour)
	if at, err := s.Revoke(t.Context(), "t", "c"); err != nil || !at.Equal(updated.Updated) {
		t.Errorf("revoked at %s, %v", at, err)
	}
}
