package explaintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Parse reads the output of EXPLAIN (FORMAT JSON) of one statement: the array that the server returns, or the single object
// that auto_explain logs. VERBOSE adds the schemas, ANALYZE and BUFFERS the counts, SETTINGS the settings.
func Parse(text []byte) (*Plan, error) {
	text = bytes.TrimSpace(text)
	var all []json.RawMessage
	if len(text) > 0 && text[0] == '{' {
		all = []json.RawMessage{nil}
		if err := decode(text, &all[0]); err != nil {
			return nil, fmt.Errorf("parse plan: %w", err)
		}
	} else if err := decode(text, &all); err != nil {
		return nil, fmt.Errorf("parse plan: %w; it must be the text of EXPLAIN (FORMAT JSON)", err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("parse plan: %d statements instead of one", len(all))
	}
	p, err := parseOne(all[0])
	if err != nil {
		return nil, fmt.Errorf("parse plan: %w", err)
	}
	return p, nil
}

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the plan")
	}
	return nil
}

func parseOne(text []byte) (*Plan, error) {
	var e struct {
		Plan     *Node             `json:"Plan"`
		JIT      json.RawMessage   `json:"JIT"`
		Settings map[string]string `json:"Settings"`
		Triggers []Trigger         `json:"Triggers"`
	}
	// What was not asked for is not there, which is not the same as none.
	var has struct {
		Plan struct {
			Loops *json.RawMessage `json:"Actual Loops"`
			Hit   *json.RawMessage `json:"Shared Hit Blocks"`
		} `json:"Plan"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	if e.Plan == nil {
		return nil, errors.New("there is no \"Plan\"")
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return nil, err
	}
	if err := e.Plan.whole(); err != nil {
		return nil, err
	}
	analyzed := has.Plan.Loops != nil
	return &Plan{
		Root: e.Plan, Analyzed: analyzed, Buffered: analyzed && has.Plan.Hit != nil,
		JIT: len(e.JIT) > 0 && string(e.JIT) != "null", Settings: e.Settings, Triggers: e.Triggers,
	}, nil
}

// whole is an error where a node is none.
func (n *Node) whole() error {
	if n == nil || n.Type == "" {
		return errors.New("a node has no \"Node Type\"")
	}
	for _, c := range n.Children {
		if err := c.whole(); err != nil {
			return err
		}
	}
	return nil
}
