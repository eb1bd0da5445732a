package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runsPurge is a purge of the tables that the sweeps of the tests are over.
const runsPurge = "purges:\n  tenant: {key: tenant, tables: [{table: run_events}, {table: runs}]}\n"

// TestNoPassword: in whatever form a password comes, and however broken the form is, no output holds it.
func TestNoPassword(t *testing.T) {
	const secret = "hunter2secret"
	db := tables.New(t)
	u, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, user := u.Hostname(), u.Port(), u.User.Username()
	keyValue := "host=" + host + " port=" + port + " user=" + user + " dbname=" + db.Name + " sslmode=disable password="
	passfile := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passfile, []byte("*:*:*:*:"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  []string
		code int
	}{
		"url":                    {env: []string{"DATABASE_URL=postgres://" + user + ":" + secret + "@" + u.Host + "/" + db.Name}},
		"url by flag":            {args: []string{"--dsn", "postgres://" + user + ":" + secret + "@" + u.Host + "/" + db.Name}},
		"query":                  {env: []string{"DATABASE_URL=postgres://" + user + "@" + u.Host + "/" + db.Name + "?password=" + secret}},
		"key and value":          {env: []string{"DATABASE_URL=" + keyValue + secret}},
		"quoted value":           {args: []string{"--dsn", keyValue + "'" + secret + " x'"}},
		"variables":              {env: []string{"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + user, "PGDATABASE=" + db.Name, "PGPASSWORD=" + secret}},
		"passfile":               {env: []string{"PGHOST=" + host, "PGPORT=" + port, "PGUSER=" + user, "PGDATABASE=" + db.Name, "PGPASSFILE=" + passfile}},
		"no server":              {env: []string{"DATABASE_URL=postgres://app:" + secret + "@127.0.0.1:1/app"}, code: exitFailed},
		"several servers":        {env: []string{"DATABASE_URL=postgres://app:" + secret + "@127.0.0.1:1,127.0.0.1:2/app"}, code: exitFailed},
		"no such host":           {env: []string{"DATABASE_URL=postgres://app:" + secret + "@no-such-host.invalid/app"}, code: exitFailed},
		"no such database":       {env: []string{"DATABASE_URL=" + strings.Replace(keyValue, db.Name, "nowhere", 1) + secret}, code: exitFailed},
		"slash":                  {env: []string{"DATABASE_URL=postgres://app:pre/" + secret + "@db/app"}, code: exitUsage},
		"per cent":               {env: []string{"DATABASE_URL=postgres://app:" + secret + "%zz@db/app"}, code: exitUsage},
		"at sign and bracket":    {env: []string{"DATABASE_URL=postgres://app:@[" + secret + "@db/app"}, code: exitUsage},
		"hash":                   {env: []string{"DATABASE_URL=postgres://app:x#" + secret + "@db:543x/app"}, code: exitUsage},
		"wrong port":             {env: []string{"DATABASE_URL=postgres://app:" + secret + "@db:99999/app"}, code: exitUsage},
		"password as port":       {env: []string{"DATABASE_URL=postgres://db:" + secret + "/app"}, code: exitUsage},
		"wrong sslmode":          {env: []string{"DATABASE_URL=postgres://app:" + secret + "@db/app?sslmode=perhaps"}, code: exitUsage},
		"open quote":             {env: []string{"DATABASE_URL=host=db password='" + secret}, code: exitUsage},
		"blank in a value":       {env: []string{"DATABASE_URL=host=db password=x " + secret}, code: exitUsage},
		"no form at all":         {args: []string{"--dsn", secret}, code: exitUsage},
		"another scheme":         {args: []string{"--dsn", "mysql://app:" + secret + "@db/app"}, code: exitUsage},
		"wrong flag":             {args: []string{"--dns", "postgres://app:" + secret + "@db/app"}, code: exitUsage},
		"wrong flag with equals": {args: []string{"--dns=postgres://app:" + secret + "@db/app"}, code: exitUsage},
		"argument":               {args: []string{"postgres://app:" + secret + "@db/app"}, code: exitUsage},
		"argument, other form":   {args: []string{"app:" + secret + "@db/app"}, code: exitUsage},
		"argument, key=value":    {args: []string{"host=db password=" + secret}, code: exitUsage},
		"as policy":              {args: []string{"--policy", "postgres://app:" + secret + "@db/app"}, code: exitUsage},
		"given twice":            {args: []string{"--dsn", "postgres://app:" + secret + "@db/app", "--dsn", "x"}, code: exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The runs are of one database, so each purges a tenant of its own.
			for _, verb := range [][]string{{"sweep"}, {"plan"}, {"check"}, {"purge", "--yes", "--tenant", name}} {
				for _, format := range []string{"table", "json"} {
					in := invocation{args: slices.Concat(verb, []string{"-o", format}, c.args), env: c.env, policy: policyOf(jobsSweep) + runsPurge}
					o := in.run(t).must(t, c.code)
					lacks(t, o.both(), secret)
					if c.code == exitDone {
						contains(t, o.stderr, "database "+db.Name+" on "+host+":"+port+" as "+user+", server ")
					}
				}
			}
			if name != "as policy" {
				o := invocation{args: append([]string{"migrate", "status"}, c.args...), env: c.env}.run(t).must(t, c.code)
				lacks(t, o.both(), secret)
			}
		})
	}
}
