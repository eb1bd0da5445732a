// Package pruner is the port through which rows are removed: a [Pruner] removes the due rows of one arm in bounded
// batches, oldest first, never a row that is still owed or whose owner is alive.
//
// It is kept apart from the append-only event port (package eventlog), so that ordinary code cannot delete. The package
// holds the contract only. pruner/memory is the reference model, pruner/postgres the engine, pruner/prunertest the contract
// as a suite that both pass, and package drain calls batch after batch.
package pruner
