package sabotage

import (
	"regexp"
	"strings"
)

// Clause is a line of a statement that decides something: a condition, an order, a bound, a lock, a setting, a value that
// is set. The statements are written a clause a line.
type Clause struct {
	Part       string // the query of the WITH list that it is in; "": none, or what follows the list
	Text       string // without comment and indent; of lines that are alike in one part, the second has " (2)" behind it
	Start, End int    // where the line stands in the statement, its end of line excluded
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	query   = regexp.MustCompile(`^(?:WITH(?: RECURSIVE)? |\), )(\w+) AS\b`)

	// decides are the words of which a line that is a clause has one, and assigns is a value that is set.
	decides = regexp.MustCompile(`\b(?:ON CONFLICT|ORDER BY|FOR (?:NO KEY )?UPDATE|FOR (?:KEY )?SHARE|FROM ONLY|SKIP LOCKED|WHERE|AND|OR|ON|HAVING|LIMIT|OFFSET|CASE|WHEN|DISTINCT|GROUP BY|set_config|coalesce|nullif|greatest|least)\b`)
	assigns = regexp.MustCompile(`^(?:SET )?\w+ = `)
)

// Clauses reads the clauses of a statement, in their order.
func Clauses(sql string) []Clause {
	var all []Clause
	part, at := "", 0
	seen := map[Clause]int{}
	for line := range strings.SplitAfterSeq(sql, "\n") {
		start := at
		at += len(line)
		text := strings.TrimSpace(comment.ReplaceAllString(line, ""))
		if m := query.FindStringSubmatch(line); m != nil {
			part = m[1]
		} else if strings.HasPrefix(line, ")") {
			part = ""
		}
		if !decides.MatchString(text) && !assigns.MatchString(text) {
			continue
		}
		c := Clause{Part: part, Text: text}
		seen[c]++
		if n := seen[c]; n > 1 {
			c.Text += " (" + string(rune('0'+n)) + ")"
		}
		c.Start, c.End = start, start+len(strings.TrimRight(line, "\n"))
		all = append(all, c)
	}
	return all
}

// Piece is a part of a clause of a statement that is rendered, and so is written in many ways.
type Piece struct{ Part, Text string }

var (
	// begins are the words that a piece begins with, longer ones first.
	begins = regexp.MustCompile(`\b(?:IS DISTINCT FROM|ORDER BY|GROUP BY|FOR UPDATE|FOR SHARE|FROM ONLY|SKIP LOCKED|LEFT JOIN|CROSS JOIN|UNION ALL|` +
		`JOIN|WHERE|AND|OR|ON|HAVING|LIMIT|OFFSET|FILTER|CASE|WHEN|THEN|ELSE|END|SELECT|FROM|RETURNING|USING|EXCEPT|MATERIALIZED|set_config)\b`)
	operand   = regexp.MustCompile(`\(SELECT [^()]*? FROM \w+ \w+\)|\bepoch FROM\b`)
	condition = regexp.MustCompile(`^(?:WHERE|AND|OR|ON|WHEN|HAVING|THEN)\b *`)
	decisive  = regexp.MustCompile(`^(?:ORDER BY|FOR UPDATE|FOR SHARE|FROM ONLY|SKIP LOCKED|LIMIT|OFFSET|MATERIALIZED|set_config)\b`)
	not       = regexp.MustCompile(`^(?:NOT )?(\()`)
	trivial   = regexp.MustCompile(`^(?:NOT )?\(?(?:true|false)?\)?$`)
)

// Pieces cuts a statement into its conditions, orders, bounds, locks and settings. Of a condition the word before it is left
// out, and so are the brackets that are not its own. spelled writes a line without the names and values that are this
// statement's and no other's of its kind.
func Pieces(sql string, spelled func(string) string) []Piece {
	return piecesIn(linesOf(sql), spelled)
}

// line is a line of a statement, and the query that it is in.
type line struct{ part, text string }

func linesOf(sql string) (all []line) {
	part := ""
	for text := range strings.SplitSeq(sql, "\n") {
		if m := query.FindStringSubmatch(text); m != nil {
			part = m[1]
		} else if strings.HasPrefix(text, ")") {
			part = ""
		}
		all = append(all, line{part, text})
	}
	return all
}

func piecesIn(lines []line, spelled func(string) string) (all []Piece) {
	for _, l := range lines {
		text := strings.TrimSpace(spelled(comment.ReplaceAllString(l.text, "")))
		masked := operand.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("o", len(s)) })
		marks := begins.FindAllStringIndex(masked, -1)
		for i, m := range marks {
			end := len(text)
			if i+1 < len(marks) {
				end = marks[i+1][0]
			}
			piece := text[m[0]:end]
			word := condition.FindString(piece)
			if word == "" && !decisive.MatchString(piece) || strings.HasPrefix(word, "THEN") && !strings.ContainsAny(piece, "<>") {
				continue
			}
			if piece = trim(strings.TrimPrefix(piece, word)); !trivial.MatchString(piece) {
				all = append(all, Piece{l.part, piece})
			}
		}
	}
	return all
}

// trim takes away the brackets, blanks and commas that belong to what is around a piece.
func trim(piece string) string {
	depth := 0
	for i := range len(piece) {
		switch piece[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 {
			piece = piece[:i]
			depth = 0
			break
		}
	}
	for ; depth > 0; depth-- {
		m := not.FindStringSubmatchIndex(piece)
		if m == nil {
			break
		}
		piece = piece[:m[2]] + piece[m[3]:]
	}
	for n := len(piece); n > 0 && strings.ContainsRune(" ,(", rune(piece[n-1])); n = len(piece) {
		piece = piece[:n-1]
	}
	return piece
}

// Taken are the pieces of a statement that are not in its edited form.
func Taken(sql, edited string, spelled func(string) string) []Piece {
	was, is := without(linesOf(sql), linesOf(edited)), without(linesOf(edited), linesOf(sql))
	return without(piecesIn(was, spelled), piecesIn(is, spelled))
}

// without are those of a list that are not in another one, each as often as it is more.
func without[T comparable](all, others []T) (left []T) {
	more := map[T]int{}
	for _, o := range others {
		more[o]++
	}
	for _, a := range all {
		if more[a] > 0 {
			more[a]--
			continue
		}
		left = append(left, a)
	}
	return left
}
