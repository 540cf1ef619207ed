-- A database of schema 1, as precast wrote it; migrations are tested on it.
PRAGMA application_id = 1886545251;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE evidence (id TEXT PRIMARY KEY, subject INTEGER NOT NULL REFERENCES subject, origin INTEGER NOT NULL REFERENCES origin, problem TEXT NOT NULL, layout TEXT NOT NULL, status TEXT NOT NULL, error REAL NOT NULL, allowed REAL NOT NULL, runs INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "evidence" VALUES('f96f57546cd0a4fd69f86cbb160e051ce67e73fe26380a8b0e888e23ca26b751',2,1,'{"Sq":17}','contiguous','ok',0.001,0.002,3,'');
CREATE TABLE "flash.attention_forward" (
  id INTEGER PRIMARY KEY,
  "T" TEXT,
  "HEAD_DIM",
  "MASK",
  "Sq" INTEGER,
  "heads" INTEGER,
  UNIQUE ("T", "HEAD_DIM", "MASK", "Sq", "heads")
);
INSERT INTO "flash.attention_forward" VALUES(1,'bf16',128,'none',67,4);
CREATE TABLE measurement (id TEXT PRIMARY KEY, subject INTEGER NOT NULL REFERENCES subject, origin INTEGER NOT NULL REFERENCES origin, problem_id INTEGER NOT NULL, key TEXT NOT NULL, problem TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, min_us REAL, q25_us REAL, median_us REAL, q75_us REAL, max_us REAL, repeats INTEGER NOT NULL, registers INTEGER NOT NULL, spills INTEGER NOT NULL, shared INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "measurement" VALUES('4cb6fb7a07653a93a3eb90714332a0bdf357984205489659391c80b44e597b7c',2,1,1,'{"Sq":67,"heads":4}','{"B":1,"Sq":67,"layout":"bhsd"}','ok','',7.5,8.5,9.5,10.5,11.5,5,128,0,49152);
INSERT INTO "measurement" VALUES('8ab7119f10d4acd4b7c5e4b49eee8775418b903e4307d62ebce31357d9055898',1,1,1,'{"Sq":67,"heads":4}','{"B":1,"Sq":67,"layout":"bhsd"}','ok','',10.0,11.0,12.0,13.0,14.0,5,-1,-1,-1);
INSERT INTO "measurement" VALUES('d86835c9445baf62a4dad7ff07d36edec09ea1e14f6da83642941bf112a3b1b0',3,1,1,'{"Sq":67,"heads":4}','{"B":1,"Sq":67,"layout":"bhsd"}','compile_error','too much shared memory',NULL,NULL,NULL,NULL,NULL,5,-1,-1,-1);
CREATE TABLE operator (id INTEGER PRIMARY KEY, family TEXT NOT NULL, name TEXT NOT NULL, relation TEXT NOT NULL UNIQUE, UNIQUE (family, name));
INSERT INTO "operator" VALUES(1,'flash','attention_forward','flash.attention_forward');
CREATE TABLE operator_column (operator INTEGER NOT NULL REFERENCES operator, position INTEGER NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('type', 'feature', 'key')), name TEXT NOT NULL, column_name TEXT NOT NULL, PRIMARY KEY (operator, kind, name));
INSERT INTO "operator_column" VALUES(1,0,'type','T','T');
INSERT INTO "operator_column" VALUES(1,1,'feature','HEAD_DIM','HEAD_DIM');
INSERT INTO "operator_column" VALUES(1,2,'feature','MASK','MASK');
INSERT INTO "operator_column" VALUES(1,3,'key','Sq','Sq');
INSERT INTO "operator_column" VALUES(1,4,'key','heads','heads');
CREATE TABLE origin (id INTEGER PRIMARY KEY, source TEXT NOT NULL, triton TEXT NOT NULL, driver TEXT NOT NULL, date TEXT NOT NULL, run TEXT NOT NULL, importer TEXT NOT NULL, UNIQUE (source, triton, driver, date, run, importer));
INSERT INTO "origin" VALUES(1,'ab12','3.9.0','570.1','2026-01-31T12:00:00Z','run-1','');
CREATE TABLE subject (id INTEGER PRIMARY KEY, operator INTEGER NOT NULL REFERENCES operator, target TEXT NOT NULL, device TEXT NOT NULL, types TEXT NOT NULL, features TEXT NOT NULL, plan TEXT NOT NULL, config TEXT NOT NULL, UNIQUE (operator, target, device, types, features, plan, config));
INSERT INTO "subject" VALUES(1,1,'sm_90','NVIDIA H200','{"T":"bf16"}','{"HEAD_DIM":128,"MASK":"none"}','tma','BLOCK_M=64 num_warps=4');
INSERT INTO "subject" VALUES(2,1,'sm_90','NVIDIA H200','{"T":"bf16"}','{"HEAD_DIM":128,"MASK":"none"}','tma','BLOCK_M=128 num_warps=8');
INSERT INTO "subject" VALUES(3,1,'sm_90','NVIDIA H200','{"T":"bf16"}','{"HEAD_DIM":128,"MASK":"none"}','tma','BLOCK_M=512 num_warps=8');
COMMIT;
