package inboxoutbox_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/prunectl/prunectl/inboxoutbox"
)

func TestWhatCannotBeAddedIsRefused(t *testing.T) {
	body := json.RawMessage(`{}`)
	for name, c := range map[string]struct {
		draft inboxoutbox.Draft
		want  error
	}{
		"plain":    {inboxoutbox.Draft{EventID: "e", Topic: "t", Body: body}, nil},
		"a scalar": {inboxoutbox.Draft{EventID: "e", Topic: "t", Body: json.RawMessage(`1`)}, nil},
		"no id":    {inboxoutbox.Draft{Topic: "t", Body: body}, inboxoutbox.ErrEvent},
		"no topic": {inboxoutbox.Draft{EventID: "e", Body: body}, inboxoutbox.ErrEvent},
		"no body":  {inboxoutbox.Draft{EventID: "e", Topic: "t"}, inboxoutbox.ErrEvent},
		"no JSON":  {inboxoutbox.Draft{EventID: "e", Topic: "t", Body: json.RawMessage(`{`)}, inboxoutbox.ErrEvent},
	} {
		if err := c.draft.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatCannotBeTakenIsRefused(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{inboxoutbox.CheckReceipt("h", "e"), nil},
		{inboxoutbox.CheckReceipt("", "e"), inboxoutbox.ErrEvent},
		{inboxoutbox.CheckReceipt("h", ""), inboxoutbox.ErrEvent},
		{inboxoutbox.CheckLease("h", "w"), nil},
		{inboxoutbox.CheckLease("", "w"), inboxoutbox.ErrClaim},
		{inboxoutbox.CheckLease("h", ""), inboxoutbox.ErrClaim},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
}

func TestACountSaysThatItHadABound(t *testing.T) {
	if s := (inboxoutbox.Count{N: 5}).String(); s != "5" {
		t.Error(s)
	}
	if s := (inboxoutbox.Count{N: 5, AtLeast: true}).String(); s != "more than 5" {
		t.Error(s)
	}
}
