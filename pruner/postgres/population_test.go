package postgres

import (
	"fmt"
	"time"

	"github.com/prunectl/prunectl/policy"
)

// runEvents is the guarded sweep of run events, with a window of 30 days.
func runEvents() policy.Sweep {
	return policy.Sweep{
		Name: "run_events", Table: policy.Name{Schema: "public", Table: "run_events"}, Age: "created_at", Window: policy.MustWindow(30 * 24 * time.Hour),
		Guard: policy.Guard{Owner: &policy.OwnerGuard{
			Table: policy.Name{Schema: "public", Table: "runs"}, Key: []policy.KeyPair{{Target: "tenant_id", Owner: "tenant_id"}, {Target: "run_id", Owner: "id"}},
			Column: "status", Terminal: policy.Texts("completed", "failed", "cancelled"),
		}},
	}
}

// population makes runs x 100 events in age order, 2 % of the runs live, 55 % of the events past the window.
func population(runs int) string {
	return fmt.Sprintf(`
CREATE TABLE runs (tenant_id text, id text, status text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE run_events (tenant_id text, run_id text, sequence int, type text NOT NULL, event jsonb, created_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, run_id, sequence));
INSERT INTO runs SELECT 'tenant-' || g %% 20, 'run-' || lpad(g::text, 8, '0'), CASE WHEN g %% 50 = 0 THEN 'running' WHEN g %% 3 = 0 THEN 'failed' ELSE 'completed' END FROM generate_series(0, %[1]d - 1) g;
INSERT INTO run_events
SELECT 'tenant-' || r %% 20, 'run-' || lpad(r::text, 8, '0'), s, 'step', jsonb_build_object('step', s, 'note', repeat('x', 60)), now() - interval '66.6 days' + (b * 5000 + s * 50 + o) * (interval '66.6 days' / (%[1]d * 100))
  FROM (SELECT b * 50 + o AS r, s, b, o FROM generate_series(0, %[1]d / 50 - 1) b, generate_series(1, 100) s, generate_series(0, 49) o) x ORDER BY b, s, o;
CREATE INDEX run_events_retention ON run_events (created_at, tenant_id, run_id, sequence);`, runs)
}
