package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prunectl/prunectl/pruner"
)

// place is what a cursor stands for: an age from which on rows are to be examined, in microseconds since 1970 as
// PostgreSQL keeps them, and also a place among the rows of that age, where a batch ended between them.
type place struct {
	Age    int64    `json:"age"`
	Group  bool     `json:"group,omitempty"`  // the rows of this age are more than a batch examines, and are walked by themselves
	Key    []string `json:"key,omitempty"`    // the last key of the age so far
	Passed string   `json:"passed,omitempty"` // tid[]: rows of the age that stay, where no key orders them
	Chunk  *chunk   `json:"chunk,omitempty"`  // the next row has more children than fit, and is being emptied
}

// chunk is how far a parent has been emptied.
type chunk struct {
	Parent string   `json:"parent"`        // its address
	Table  int      `json:"table"`         // which of the arm's children is next
	Key    []string `json:"key,omitempty"` // the last key of that table so far
}

// plain reports whether the place is an age alone.
func (p place) plain() bool { return !p.Group && p.Key == nil && p.Passed == "" && p.Chunk == nil }

// cursor writes the place down. A plain age is a number, which is all that a log usually shows.
func (p place) cursor() pruner.Cursor {
	if p.plain() {
		return pruner.NewCursor(strconv.FormatInt(p.Age, 10))
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return pruner.NewCursor(string(b))
}

// parsePlace reads a cursor back; the zero cursor is the place at since. A text that the engine would not have written so,
// byte for byte, is none of its cursors: what is left over in it could mean something. No place lies before since, where
// rows are undated and stay.
func parsePlace(c pruner.Cursor, since time.Time) (place, error) {
	first := since.UnixMicro()
	if c.IsZero() {
		return place{Age: first}, nil
	}
	var p place
	var err error
	if text := c.String(); strings.HasPrefix(text, "{") {
		err = json.Unmarshal([]byte(text), &p)
	} else {
		p.Age, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || p.cursor() != c || p.Age < first {
		return place{}, fmt.Errorf("%q is no cursor of this engine", c)
	}
	return p, nil
}

// timestamptz writes microseconds so that the server reads them exactly under every DateStyle and time zone. Years beyond
// four digits and before Christ do not come up: a place lies between since and a cutoff.
func timestamptz(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.999999") + "+00"
}
