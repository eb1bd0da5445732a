package postgres

import (
	"fmt"
	"testing"
)

func TestZZPins(t *testing.T) {
	for _, n := range []int{300, 20000} {
		conn := specimenDB.New(t).Conn(t)
		mustExec(t, conn, specimenRows(n))
		for _, stats := range []string{"never", "analysed"} {
			if stats == "analysed" {
				mustExec(t, conn, "VACUUM ANALYZE")
			}
			for _, pin := range pins {
				if pin.name == "plan_cache_mode" || pin.name == "work_mem" {
					continue
				}
				res := map[string]int{}
				for _, sp := range specimens() {
					arm := sp.open(t, Conn(conn))
					p := planner{conn, arm}
					p.begin(t)
					v := "on"
					if pin.name == "max_parallel_workers_per_gather" {
						v = "2"
						mustExec(t, conn, "SET LOCAL parallel_setup_cost=0; SET LOCAL parallel_tuple_cost=0; SET LOCAL min_parallel_table_scan_size=0; SET LOCAL min_parallel_index_scan_size=0")
					}
					if pin.name == "jit" {
						mustExec(t, conn, "SET LOCAL jit_above_cost=100000")
					}
					mustExec(t, conn, "SET LOCAL "+pin.name+" = "+v)
					for name, pl := range plannedOf(arm) {
						if err := p.prepare(t.Context(), name, pl.statement); err != nil {
							t.Fatal(err)
						}
						for _, g := range []bool{false, true} {
							e, err := p.explain(t.Context(), "FORMAT JSON", name, pl.statement, planValues(arm, 5000), g)
							if err != nil {
								t.Fatal(err)
							}
							for _, f := range planFaults(arm, pl.shape, e) {
								res[fmt.Sprintf("%s %s g=%t: %s", sp.name, name, g, f)]++
							}
						}
					}
					p.end(t)
				}
				k := 0
				fmt.Printf("== n=%d %s %s: %d\n", n, stats, pin.name, len(res))
				for r := range res {
					if k++; k <= 3 {
						fmt.Println("   ", r)
					}
				}
			}
		}
	}
}
