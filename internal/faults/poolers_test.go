package faults

var poolers []fault
