// Package tenant is the port through which everything of one tenant is removed: a [Remover] has a [Step] for each table,
// and can look for what is left.
//
// It is about whose a row is, not about how old: no window and no guard protects a row here. So it is kept apart from
// sweeps: a Step is no [pruner.Pruner], and nothing that drains a sweep can be given one. Package purge drives it,
// pruner/postgres carries it out.
package tenant
