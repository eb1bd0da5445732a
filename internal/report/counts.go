package report

// Counts are in rows; null is not counted.
type Counts struct {
	Examined int  `json:"examined"` // looks: a row that two passes met counts twice
	Removed  int  `json:"removed"`
	Children int  `json:"children"`
	Held     *int `json:"held"`
	Locked   int  `json:"locked"`
	Moved    int  `json:"moved"`
	Orphan   int  `json:"orphan"`
	Stuck    int  `json:"stuck"`
	Outside  int  `json:"outside"`
	Undated  *int `json:"undated"`
	Unusable *int `json:"unusable"`
	Raised   int  `json:"raised"`
}

// Add adds o. What only one of the two has counted is that one's count.
func (c *Counts) Add(o Counts) {
	c.Examined += o.Examined
	c.Removed += o.Removed
	c.Children += o.Children
	c.Held = sum(c.Held, o.Held)
	c.Locked += o.Locked
	c.Moved += o.Moved
	c.Orphan += o.Orphan
	c.Stuck += o.Stuck
	c.Outside += o.Outside
	c.Undated = sum(c.Undated, o.Undated)
	c.Unusable = sum(c.Unusable, o.Unusable)
	c.Raised += o.Raised
}

func sum(a, b *int) *int {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := *a + *b
	return &n
}
