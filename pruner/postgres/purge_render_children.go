package postgres

import (
	"fmt"
	"strconv"
	"strings"
)

// Rows of a table that does not say whose they are go by the rows that they refer to, over as many tables as there are
// between. A batch takes a page of the tenant's rows, and of the rows that refer to them as many as fit: those of the
// first ones of the page, each with all of its rows. One with more than fit is emptied by itself.

// page are the next rows of the tenant, or the one that is emptied, with what is needed to find the rows that refer to them.
func (s *removal) page(r *renderer, f form) {
	if f.one {
		r.cte("page", "the row that is emptied")
	} else {
		r.cte("page", "the tenant's next rows of "+remark(s.top().name.String()))
	}
	cols := append([]string{"e.ctid AS tid"}, s.keysAs("e")...)
	cols = append(cols, s.carried(1, "e")...)
	if !f.one {
		order := ""
		if s.walk == byKey {
			names := []string{"e." + ident(s.column().name)}
			if s.alone() {
				names = nil
			}
			for _, k := range s.keys {
				names = append(names, "e."+ident(k.name))
			}
			order = "ORDER BY " + strings.Join(names, ", ")
		}
		r.line("  SELECT %s, row_number() OVER (%s) AS n FROM ONLY %s e", strings.Join(cols, ", "), order, tableName(s.top().name))
		s.walkSQL(r, f, argLook)
		return
	}
	r.line("  SELECT %s, 1 AS n FROM ONLY %s e", strings.Join(cols, ", "), tableName(s.top().name))
	if s.walk == byKey {
		r.line("   WHERE (%s) IS TRUE  -- whose", s.whose(r, 0, "e"))
		for i, k := range s.keys {
			r.line("     AND e.%s = %s", ident(k.name), r.arg(argWhose+strconv.Itoa(i), "text")+"::"+k.typ)
		}
	} else {
		r.line("   WHERE e.ctid = %s", r.arg(argWhose, "tid"))
		r.line("     AND (%s) IS TRUE  -- whose", s.whose(r, 0, "e"))
	}
	r.line("     AND (SELECT g.ok FROM gate g)")
}

// carried are the columns of a row, by names of our own, to which the rows of the table at this depth refer.
func (s *removal) carried(depth int, alias string) (cols []string) {
	for i, k := range s.chain[depth].key {
		cols = append(cols, alias+"."+ident(k.Parent)+" AS r"+strconv.Itoa(i))
	}
	return cols
}

// found are the rows that refer to those of the page: one probe of a key after the other. OFFSET 0 keeps them probes, since
// as joins they could read a table as a whole.
func (s *removal) found(r *renderer, f form) {
	why := "the rows that refer to them, and one more than fit"
	if f.one {
		why = "the next rows that refer to it"
	}
	r.cte("found", why)
	depth := len(s.chain) - 1
	cols := []string{"p.n", "p.tid AS t0"}
	for n := 1; n < depth; n++ {
		cols = append(cols, fmt.Sprintf("c%d.tid AS t%[1]d", n))
	}
	cols = append(cols, "c.tid")
	keyed := f.one && s.chunked()
	if keyed {
		for i := range s.chain[depth].keyset {
			cols = append(cols, fmt.Sprintf("c.l%d", i))
		}
	}
	r.line("  SELECT %s FROM page p", strings.Join(cols, ", "))
	up := "p"
	for n := 1; n <= depth; n++ {
		alias := "c"
		cols := []string{"x.ctid AS tid"}
		if n < depth {
			alias += strconv.Itoa(n)
			cols = append(cols, s.carried(n+1, "x")...)
		}
		var on []string
		for i, k := range s.chain[n].key {
			on = append(on, "x."+ident(k.Child)+" = "+up+".r"+strconv.Itoa(i))
		}
		more := ""
		if n == depth && keyed {
			var have, last []string
			for i, k := range s.chain[n].keyset {
				name := "x." + ident(k.name)
				cols = append(cols, name+" AS l"+strconv.Itoa(i))
				have = append(have, name)
				if f.last {
					last = append(last, r.arg(argLast+strconv.Itoa(i), "text")+"::"+k.typ)
				}
			}
			if f.last {
				more = fmt.Sprintf(" AND (%s) > (%s)", strings.Join(have, ", "), strings.Join(last, ", "))
			}
			more += " ORDER BY " + strings.Join(have, ", ")
		}
		r.line("   CROSS JOIN LATERAL (SELECT %s FROM ONLY %s x WHERE %s%s OFFSET 0) %s", strings.Join(cols, ", "), tableName(s.chain[n].table.name), strings.Join(on, " AND "), more, alias)
		up = alias
	}
	switch {
	case !f.one:
		r.line("   LIMIT %s + 1", r.arg(argLimit, "int"))
	case keyed:
		r.line("   LIMIT %s", r.arg(argLimit, "int"))
	default:
		r.line("   WHERE NOT (c.tid = ANY (%s))  -- those that stayed are passed over by address", r.arg(argPassed, "tid[]"))
		r.line("   LIMIT %s", r.arg(argLimit, "int"))
	}
}

// fitting cuts before the row of the page whose own rows do not all fit.
func (s *removal) fitting(r *renderer, f form) {
	if f.one {
		r.cte("seen", "what this batch examines")
		r.line("  SELECT f.* FROM found f")
		return
	}
	r.cte("cut", "the first row of the page that is left for the next batch")
	r.line("  SELECT CASE WHEN (SELECT count(*) FROM found f) > %s", r.arg(argLimit, "int"))
	r.line("              THEN (SELECT max(f.n) FROM found f)")
	r.line("              ELSE (SELECT count(*) + 1 FROM page p) END AS n")
	r.cte("seen", "what this batch examines")
	r.line("  SELECT f.* FROM found f, cut WHERE f.n < cut.n")
}

// held locks the rows by which others are the tenant's, so that they are not moved to another tenant meanwhile. Rows whose
// own row somebody else is changing are left.
func (s *removal) held(r *renderer) (of string) {
	var cs []string
	for n := range len(s.chain) - 1 {
		name := "held" + strconv.Itoa(n)
		r.cte(name, "by which they are the tenant's: it cannot move to another meanwhile")
		r.line("  SELECT d.ctid AS tid FROM ONLY %s d", tableName(s.chain[n].table.name))
		r.line("   WHERE d.ctid = ANY (ARRAY(SELECT s.t%d FROM seen s))", n)
		if n == 0 {
			r.line("     AND (%s) IS TRUE  -- whose, again", s.whose(r, 0, "d"))
		}
		r.line("     FOR SHARE SKIP LOCKED")
		cs = append(cs, fmt.Sprintf("(s.t%d IN (SELECT h.tid FROM %s h)) IS TRUE", n, name)) // a filter, which is hashed; a join would be a loop in a loop
	}
	return " WHERE " + strings.Join(cs, " AND ")
}

// chunked reports whether an index walks the rows that refer to one row in the order of a unique key.
func (s *removal) chunked() bool { return len(s.chain) == 2 && len(s.chain[1].keyset) > 0 }

// childPlaces answers where the batch ended: the last row of the page that is done, the first one where it has more rows
// than fit, how long the page was, and the last of the rows of one.
func (s *removal) childPlaces(r *renderer, f form) {
	place, order := "p.tid::text", "p.n"
	if s.walk == byKey {
		place = s.keyText("p")
	}
	if !f.one {
		r.line("     , (SELECT %s FROM page p, cut WHERE p.n < cut.n ORDER BY %s DESC LIMIT 1) AS last", place, order)
		s.ends(r, f)
		r.line("     , (SELECT %s FROM page p, cut WHERE p.n = 1 AND cut.n = 1) AS wide  -- has more of them than fit", place)
		r.line("     , (SELECT count(*) FROM page p WHERE p.n >= (SELECT c.n FROM cut c)) AS rest, (SELECT count(*) FROM page p) AS page")
		return
	}
	switch {
	case s.chunked():
		var texts, order []string
		for i := range s.chain[1].keyset {
			texts = append(texts, fmt.Sprintf("s.l%d::text", i))
			order = append(order, fmt.Sprintf("s.l%d DESC", i))
		}
		r.line("     , (SELECT to_json(ARRAY[%s]::text[])::text FROM seen s ORDER BY %s LIMIT 1) AS last", strings.Join(texts, ", "), strings.Join(order, ", "))
	case f.locks():
		r.line("     , set_config('%s', (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s), true) AS last", setPassed)
	default:
		r.line("     , (SELECT coalesce(array_agg(s.tid), '{}')::text FROM seen s) AS last")
	}
	s.ends(r, f)
	r.line("     , NULL::text AS wide, 0 AS rest, 1 AS page")
}

// passes reports whether rows that stay are passed over by address.
func (s *removal) passes(f form) bool {
	if s.child() {
		return f.one && !s.chunked()
	}
	return s.walk == byIndex
}
