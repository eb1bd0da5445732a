package report

import (
	"fmt"
	"time"
)

// Schema names the form of the JSON document. Keys stay within a version; new keys may come.
const Schema = "prunectl.report/v1"

// The commands that report.
const (
	Sweeping  = "sweep"
	Planning  = "plan"
	Checking  = "check"
	Surveying = "status"
)

// Report is the result of one run of a command, also of one that failed.
type Report struct {
	Schema   string     `json:"schema"`
	Command  string     `json:"command"`
	Version  string     `json:"version"`
	Policy   *Policy    `json:"policy,omitempty"`
	Database *Database  `json:"database,omitempty"` // absent where no server was reached
	Now      *time.Time `json:"now"`                // the server's clock, in UTC; null where no server was reached
	AsOf     *time.Time `json:"as_of"`              // the now that --as-of put in its place
	Window   *Window    `json:"window,omitempty"`   // that --window put in the place of the file's
	Elapsed  float64    `json:"elapsed_seconds"`
	ExitCode int        `json:"exit_code"`
	Signal   string     `json:"signal,omitempty"` // what ended the run early: SIGTERM
	Error    *Error     `json:"error"`            // what ended the run as a whole; a sweep's own error is beside the sweep
	Problems []Problem  `json:"problems,omitempty"`
	Totals   Counts     `json:"totals"`
	Sweeps   []Sweep    `json:"sweeps"`
	Vacuum   *Vacuum    `json:"vacuum_held_back,omitempty"`

	Components []Component   `json:"components,omitempty"`
	Policies   []InboxPolicy `json:"inbox_outbox,omitempty"`
	Health     []EventHealth `json:"domain_events,omitempty"`
	Reopening  *Reopening    `json:"reopening,omitempty"`
	Purge      *Purge        `json:"purge,omitempty"`
	Purges     []PurgeCheck  `json:"purges,omitempty"` // of a check
}

// Policy is the policy file that was read.
type Policy struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256,omitempty"` // of the file's bytes, in hexadecimal
}

// Database says where the command was. It has no password.
type Database struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Name   string `json:"name"`
	Role   string `json:"role"`
	Server string `json:"server"` // its version
}

// Problem is a fault of the policy file.
type Problem struct {
	Position string `json:"position"` // file:line:column
	Message  string `json:"message"`  // sweep.key: what; what to write
}

// Error is an error in words, without secrets.
type Error struct {
	SQLState *string `json:"sqlstate"` // null where the server did not say it
	Message  string  `json:"message"`
}

// Vacuum says who keeps vacuum from reusing the space of removed rows.
type Vacuum struct {
	PID   int     `json:"pid"`  // 0 where it is no session
	What  string  `json:"what"` // the session's state, or a prepared transaction
	App   string  `json:"app"`
	Since float64 `json:"since_seconds"`
}

// Sweep is what became of one sweep.
type Sweep struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Counts
	*Backlog
	Stop           Stop     `json:"stop"`
	StopBy         StopBy   `json:"stop_by"`
	Drained        bool     `json:"drained"`
	Batches        int      `json:"batches"`
	Elapsed        float64  `json:"elapsed_seconds"`
	SlowestBatch   float64  `json:"slowest_batch_seconds"`
	UnknownCommits int      `json:"unknown_commits"`
	Overdue        *float64 `json:"overdue_seconds"` // how far the oldest due row is past its window; 0: nothing is due; null: not read
	Arms           []Arm    `json:"arms"`
	HeldBy         []HeldBy `json:"held_by"` // empty where nothing is held, or where it was not broken down
	StuckOn        []Block  `json:"stuck_on"`
	Checks         []Check  `json:"checks"`
	Error          *Error   `json:"error"`

	words Words
	notes []string
}

// Words are what the lines for a person speak of, beside the facts: they are no part of the document.
type Words struct {
	Age string // the age column
	// Expires is whether a row goes by when it expires, which is what the age column then says.
	Expires bool
	Owner   string // the owner's table, "" without an owner
	Owed    string // the table whose rows are owed, "" where none are
	Hold    string // the column that holds rows, "" where none does
	Guard   string // how the guard holds, for a plan: "owner public.runs is locked FOR SHARE"
	// Children is what goes with a row, for a plan: "rows of public.lines go with them"; "" for nothing.
	Children string
	AtOnce   bool   // a window is at_once
	Unusable string // what makes a row's own window unusable: "zero, negative or over 36500d"
	Floor    string // to which a row's own window is raised
	// InForce are the values in force, the defaults among them, for a check.
	InForce string
}

// Say gives the sweep its words.
func (s *Sweep) Say(w Words) { s.words = w }

// Note adds a line about the sweep to a plan.
func (s *Sweep) Note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Arm is the part of a sweep that one statement carries out through one index.
type Arm struct {
	Arm    string     `json:"arm"`            // the state, where the sweep has an arm a state; else the sweep's name
	Window *int64     `json:"window_seconds"` // null: never
	Cutoff *time.Time `json:"cutoff"`         // null: nothing is past its window
	Index  string     `json:"index"`
	Counts
	*ArmPlan
}

// ArmPlan is what a plan knows of an arm.
type ArmPlan struct {
	Due        int        `json:"due"`
	DueIsFloor bool       `json:"due_is_floor"` // the count stopped there: at least so many are due
	ThisRun    int        `json:"this_run"`     // how many of them one run removes at most, by the ceilings and the budget of rows
	ReadInVain int        `json:"read_in_vain"` // rows that a pass examines and leaves
	OldestDue  *time.Time `json:"oldest_due"`
	OldestHeld *time.Time `json:"oldest_held"`
	Statements []string   `json:"statements,omitempty"` // --sql
}

// HeldBy is one reason for which rows past their window are kept.
type HeldBy struct {
	Reason string     `json:"reason"`
	Value  *string    `json:"value"` // the state
	Rows   int        `json:"rows"`
	Owners *int       `json:"owners"`
	Oldest *time.Time `json:"oldest"`
}

// Block names what keeps stuck rows in place.
type Block struct {
	Constraint string `json:"constraint"` // or trigger
	Table      string `json:"table"`
	Rows       int    `json:"rows"`
}

// Check is one answer of the preflight.
type Check struct {
	Check    string  `json:"check"`
	Result   Verdict `json:"result"`
	Detail   string  `json:"detail"`
	Fix      *string `json:"fix"`
	Position string  `json:"position,omitempty"` // file:line:column of the key it is about
}

// New is an empty report of a command.
func New(command, version string) *Report {
	return &Report{Schema: Schema, Command: command, Version: version, Sweeps: []Sweep{}}
}

// NewSweep is an empty entry of a sweep; no list in it is nil, so that none is null in JSON.
func NewSweep(name, table string) Sweep {
	return Sweep{Name: name, Table: table, Arms: []Arm{}, HeldBy: []HeldBy{}, StuckOn: []Block{}, Checks: []Check{}}
}

// Sum sets the totals to the sum of the sweeps, or of the tables of a purge.
func (r *Report) Sum() {
	r.Totals = Counts{}
	for _, s := range r.Sweeps {
		r.Totals.Add(s.Counts)
	}
	if r.Purge != nil {
		r.Totals.Add(r.Purge.counts())
	}
}
