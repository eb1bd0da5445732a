// Package systems holds the policies of real systems against their tables: condensed DDL of job queues, inboxes,
// orchestrators and applications, as their own migrations make them, with the sweeps that this version can express.
package systems

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prunectl/prunectl/internal/pgtest"
	"github.com/prunectl/prunectl/policy/policyfile"
	"github.com/prunectl/prunectl/pruner/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func file(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSystems: a sweep is taken through the index that the system's own migrations make; where there is none it is refused,
// and with the index that the refusal proposes it is taken.
func TestSystems(t *testing.T) {
	const policies = "../../policy/policyfile/testdata/systems.yaml"
	f, err := policyfile.Parse(policies, file(t, policies))
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	db.Exec(t, string(file(t, "testdata/schemas.sql")))
	got := map[string]string{}
	for _, s := range f.Sweeps {
		in, err := postgres.Inspect(t.Context(), postgres.Pool(db.Pool(t)), s)
		if err != nil {
			t.Fatal(err)
		}
		got[s.Name] = in.Index
		refused := in.Refused()
		if len(refused) == 0 {
			continue
		}
		got[s.Name] = "refused: " + refused[0].Name
		if !slices.ContainsFunc(refused, func(c postgres.Check) bool { return c.Name == "index" }) {
			continue
		}
		db.Exec(t, strings.Replace(refused[0].Fix, " CONCURRENTLY", "", 1))
		if in, err = postgres.Inspect(t.Context(), postgres.Pool(db.Pool(t)), s); err != nil {
			t.Fatal(err)
		}
		for _, c := range in.Refused() {
			t.Errorf("%s, with the proposed index: %s: %s", s.Name, c.Name, c.Detail)
		}
	}
	want := map[string]string{
		"run_events": "run_events_created_at_idx", "inbox": "queue_inbox_completed", "outbox": "queue_outbox_delivered",
		"river": "river_job_state_and_finalized_at_index", "airflow_log": "idx_log_dttm", "sentry_nodestore": "nodestore_node_timestamp",
		"celery_results": "django_cele_date_do_f59aad_idx", "masstransit_inbox": "IX_InboxState_Delivered", "n8n_executions": "IDX_stoppedAt",
		"zulip_archive": "zerver_archivetransaction_timestamp", "domain_events_settled": "domain_event_consumed_by_policy", "domain_events_succeeded": "domain_event_consumed_by_policy",
		"hangfire_jobs": "ix_hangfire_job_expireat", "hangfire_sets": "ix_hangfire_set_expireat", "wolverine_dead": "idx_wolverine_dead_letters_expires",
		"svix_payloads": "messagecontent_expiry", "django_sessions": "django_session_expire_date", "authentik_events": "authentik_events_event_expires_idx",
		// One index for the rows without a window of their own, one for those with one.
		"domain_events": "domain_event_recorded, domain_event_own_window",
		// Their migrations make no index that leads with the age, or the expiry.
		"graphile_failed": "refused: index", "que_finished": "refused: index", "que_expired": "refused: index", "django_admin_log": "refused: index",
		"procrastinate": "refused: index", "wolverine_inbox": "refused: index", "posthog_exports": "refused: index",
		// Partitioned tables are planned.
		"pgboss": "refused: kind",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
